// Where code comes from: the executable, the disk, a compiler.
#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "backend/gpu/pipeline_store/store_state.h"
#include "base/hash.h"

namespace tern::gpu {
namespace {

std::string digest_of(std::span<const std::byte> bytes) { return "sha256 " + sha256_hex(bytes); }

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

void Store::State::try_tier(Work& work) {
  if (options.switches.tiers[work.next] == Tier::kEmbedded) {
    try_embedded(work);
  } else {
    try_disk(work);
  }
}

// The row whose image this device runs best. It is compared with the running sources, because an
// executable may have been linked from parts of two builds.
const EmbeddedKernel* Store::State::find_embedded(const Work& work, bool is_ptx,
                                                  std::string& why) const {
  const EmbeddedKernel* best = nullptr;
  std::size_t best_rank = device.accepts.size();
  bool has_code_for_device = false;
  for (const EmbeddedKernel& row : embedded.kernels) {
    const EmbeddedImage& image = embedded.images[row.image];
    if ((image.kind == ImageKind::kPtx) != is_ptx) continue;
    const auto at = std::find(device.accepts.begin(), device.accepts.end(), image.target);
    const auto rank = static_cast<std::size_t>(at - device.accepts.begin());
    if (!is_ptx && at == device.accepts.end()) continue;
    has_code_for_device = true;
    if (row.stem != work.kernel->code.stem || row.variant != work.kernel->code.variant) continue;
    if (row.constants != work.constants) continue;
    if (best != nullptr && (is_ptx || rank >= best_rank)) continue;
    best = &row;
    best_rank = rank;
  }
  if (best == nullptr) {
    why = has_code_for_device ? fmt::format("the executable's code for {} lacks this kernel",
                                            is_ptx ? std::string("any device (PTX)") : work.target)
                              : fmt::format("the executable holds no {} for {}",
                                            is_ptx ? "PTX" : "code", work.target);
    return nullptr;
  }
  if (best->source_hash != work.source) {
    why = "the executable's code was made from other sources";
  } else if (best->flags != work.flags) {
    why = fmt::format("the executable's code was made with the flags {}", best->flags);
  } else {
    return best;
  }
  return nullptr;
}

void Store::State::try_embedded(Work& work) {
  std::string why;
  const EmbeddedKernel* row = find_embedded(work, false, why);
  if (row == nullptr) {
    work.verdicts.push_back({Tier::kEmbedded, why});
    return;
  }
  const EmbeddedImage& image = embedded.images[row->image];
  Candidate candidate;
  candidate.tier = Tier::kEmbedded;
  candidate.kind =
      image.kind == ImageKind::kMetallib ? PayloadKind::kMetallib : PayloadKind::kCubin;
  candidate.bytes = image.bytes;
  candidate.image = row->image;
  candidate.compiler = "embedded";
  finish(work, std::move(candidate));
}

bool Store::State::uses_disk() const {
  const std::vector<Tier>& tiers = options.switches.tiers;
  return options.cache && options.switches.cache != cache::Mode::kOff &&
         std::find(tiers.begin(), tiers.end(), Tier::kDisk) != tiers.end();
}

Compiler* Store::State::compiler_of(Tier tier) const {
  for (const std::shared_ptr<Compiler>& compiler : compilers) {
    if (compiler->tier() == tier) return compiler.get();
  }
  return nullptr;
}

Result<std::string> Store::State::version_for(const Work& work, Compiler& compiler,
                                              std::string& why) const {
  Result<CompilerIdentity> identity = compiler.identity();
  if (!identity.ok()) {
    why = identity.error().message();
    return identity.error();
  }
  std::string version = std::move(identity->version);
  if (compiler.tier() == Tier::kDriver) {
    const EmbeddedKernel* row = find_embedded(work, true, why);
    if (row == nullptr) return fail(ErrorCode::kNotFound, "{}", why);
    version += "; PTX " + digest_of(embedded.images[row->image].bytes);
  }
  return version;
}

Result<cache::Key> Store::State::key_for(const Work& work, const std::string& compiler) const {
  KernelKey key;
  key.tern = options.tern;
  if (!work.kernel->code.generator.empty()) key.tern += " " + work.kernel->code.generator;
  key.kernel = work.kernel->code.stem;
  key.variant = work.kernel->code.variant;
  key.constants = work.constants;
  key.source = work.source;
  key.flags = work.flags;
  key.target = work.target;
  key.compiler = compiler;
  key.driver = device.driver;
  key.runtime = device.runtime;
  return cache::make_key(device.backend, work.target, key);
}

// One key per compiler that is here, in the order of their tiers. A compiler need not be switched
// on for its entries to be used.
void Store::State::try_disk(Work& work) {
  if (!options.cache || options.switches.cache == cache::Mode::kOff) {
    work.verdicts.push_back({Tier::kDisk, "the disk tier is switched off"});
    return;
  }
  std::string reasons;
  for (const Tier tier : {Tier::kOffline, Tier::kRuntime, Tier::kDriver}) {
    Compiler* compiler = compiler_of(tier);
    std::string why;
    if (compiler == nullptr) continue;
    const Result<std::string> version = version_for(work, *compiler, why);
    if (!version.ok()) continue;
    const Result<cache::Key> key = key_for(work, *version);
    if (!key.ok()) continue;
    cache::Lookup lookup = options.cache->get(*key, code_kind());
    if (!lookup.entry) {
      reasons += fmt::format("{}{} ({})", reasons.empty() ? "" : ", ", lookup.why, name_of(tier));
      continue;
    }
    Candidate candidate;
    candidate.tier = Tier::kDisk;
    candidate.kind = lookup.entry->kind();
    candidate.file = lookup.entry->mark();
    const auto entry = std::make_shared<const cache::Entry>(std::move(*lookup.entry));
    candidate.bytes = entry->payload();
    candidate.owned = std::shared_ptr<const void>(entry);
    candidate.compiler = *version;
    candidate.key = *key;
    finish(work, std::move(candidate));
    if (work.result) return;
    reasons.clear();  // finish() has given its verdict
  }
  if (work.verdicts.empty() || work.verdicts.back().tier != Tier::kDisk) {
    work.verdicts.push_back(
        {Tier::kDisk,
         reasons.empty() ? "no compiler is here whose entries could be looked for" : reasons});
  }
}

// On a thread of its own. Leaves a candidate or a verdict.
void Store::State::compile(Work& work, Tier tier) {
  Compiler* compiler = compiler_of(tier);
  std::string why = "there is none for this device";
  const auto give_up = [&work, tier](std::string reason) {
    work.verdicts.push_back({tier, std::move(reason)});
  };
  if (compiler == nullptr) return give_up(why);
  const Result<std::string> version = version_for(work, *compiler, why);
  if (!version.ok()) return give_up(why);
  const Result<cache::Key> key = key_for(work, *version);
  if (!key.ok()) return give_up(key.error().message());
  const std::shared_ptr<const Outcome> outcome = compiles.run(key->hash(), [&] {
    Outcome made;
    made.is_answered = is_known(work.id);
    if (!made.is_answered) made = compile_now(work, *compiler, *key, uses_disk());
    // Code is kept until the pipeline is made from it, what is wrong with the sources for ever.
    const bool keep = made.bytes != nullptr || made.result.is_input_error;
    return std::pair(std::move(made), keep);
  });
  if (outcome->is_answered) return;
  if (!outcome->bytes) {
    give_up(outcome->result.error);
    warn(fmt::format("GPU kernel {} was not compiled by {}: {}{}{}", work.name, compiler->name(),
                     outcome->result.error, outcome->result.diagnostics.empty() ? "" : "\n",
                     outcome->result.diagnostics));
    return;
  }
  Candidate candidate;
  candidate.tier = outcome->is_from_disk ? Tier::kDisk : tier;
  candidate.kind = outcome->result.artefact->kind;
  candidate.owned = outcome->bytes;
  candidate.bytes = *outcome->bytes;
  candidate.compiler = *version;
  candidate.key = *key;
  candidate.file = outcome->file;
  candidate.compile_ms = outcome->compile_ms;
  candidate.diagnostics = outcome->result.diagnostics;
  work.candidate = std::move(candidate);
}

// Alone with the key, in this process and, as far as locks go, among all.
Store::State::Outcome Store::State::compile_now(const Work& work, Compiler& compiler,
                                                const cache::Key& key, bool with_cache) {
  Outcome outcome;
  cache::KeyLock lock;
  if (with_cache) {
    lock = options.cache->lock(key);
    // Another process may have stored it meanwhile; what the device has just refused is not that.
    const cache::Lookup lookup = options.cache->get(key, code_kind());
    const bool is_refused = lookup.entry && work.bad_file &&
                            work.bad_file->inode == lookup.entry->mark().inode &&
                            work.bad_file->modified_ns == lookup.entry->mark().modified_ns;
    if (lookup.entry && !is_refused) {
      const std::span<const std::byte> payload = lookup.entry->payload();
      outcome.bytes =
          std::make_shared<const std::vector<std::byte>>(payload.begin(), payload.end());
      outcome.result.artefact = Compiled{code_kind(), {}, lookup.entry->entry_points()};
      outcome.file = lookup.entry->mark();
      outcome.is_from_disk = true;
      return outcome;
    }
  }
  const auto start = std::chrono::steady_clock::now();
  outcome.result = run_compiler(work, compiler, key);
  outcome.compile_ms = ms_since(start);
  if (!outcome.result.artefact) return outcome;
  Compiled& made = *outcome.result.artefact;
  if (with_cache) {
    const cache::PutOutcome stored =
        options.cache->put(key, made.kind, made.entry_points, made.bytes);
    if (stored.stored) outcome.file = stored.mark;
  }
  outcome.bytes = std::make_shared<const std::vector<std::byte>>(std::move(made.bytes));
  return outcome;
}

CompileResult Store::State::run_compiler(const Work& work, Compiler& compiler,
                                         const cache::Key& key) {
  CompileResult result;
  try {
    CompileJob job{work.kernel->code, work.target, {}, {}};
    cache::ScratchFolder scratch;
    if (compiler.needs_scratch()) {
      if (!options.cache) {
        result.error = "no private folder for the compiler: the store has no cache object";
        return result;
      }
      Result<cache::ScratchFolder> made = options.cache->make_scratch(key);
      if (!made.ok()) {
        result.error = made.error().message();
        return result;
      }
      scratch = std::move(made).value();
      job.scratch = scratch.path();
    }
    std::string why;
    if (compiler.tier() == Tier::kDriver) {
      if (const EmbeddedKernel* row = find_embedded(work, true, why)) {
        job.ptx = embedded.images[row->image].bytes;
      }
    }
    result = compiler.compile(job);
    if (result.artefact &&
        (result.artefact->bytes.empty() || result.artefact->kind != code_kind())) {
      result.artefact.reset();
      result.error = "the compiler reported success and gave no code for this device";
    }
  } catch (const std::exception& error) {
    result = {};
    result.error = error.what();
  }
  return result;
}

}  // namespace tern::gpu
