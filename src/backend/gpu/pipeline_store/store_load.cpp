// From bytes to a pipeline that may be launched: loading, the checks after it, the self-test.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include "backend/gpu/pipeline_store/store_state.h"
#include "base/hash.h"

namespace tern::gpu {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Of the archive of finished pipelines of one device.
struct ArchiveKey {
  std::string tern;
  std::string device;
  std::string target;
  std::string driver;
  std::string runtime;
};
template <class Visit>
void visit_key_fields(const ArchiveKey& key, Visit&& visit) {
  const auto& [tern, device, target, driver, runtime] = key;
  visit("tern", tern);
  visit("device", device);
  visit("target", target);
  visit("driver", driver);
  visit("runtime", runtime);
}

Result<cache::Key> archive_key(const StoreOptions& options, const DeviceDescription& device) {
  return cache::make_key(
      device.backend, device.target,
      ArchiveKey{options.tern, device.name, device.target, device.driver, device.runtime});
}

}  // namespace

// The verified bytes go through a private file, because devices load archives from files only.
void Store::State::open_archive() {
  if (is_archive_open || !loader->has_archive()) return;
  is_archive_open = true;
  std::string path;
  cache::ScratchFolder scratch;
  if (uses_disk()) {
    const Result<cache::Key> key = archive_key(options, device);
    if (!key.ok()) return;
    const cache::Lookup lookup = options.cache->get(*key, PayloadKind::kBinaryArchive);
    if (lookup.entry) {
      Result<cache::ScratchFolder> made = options.cache->make_scratch(*key);
      if (made.ok()) {
        scratch = std::move(made).value();
        path = scratch.path() + "/archive";
        std::ofstream file(path, std::ios::binary);
        const std::span<const std::byte> bytes = lookup.entry->payload();
        file.write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
        file.close();
        if (!file) path.clear();
      }
    }
    if (!path.empty() && !loader->open_archive(path).ok()) {
      options.cache->remove(lookup.entry->mark());
      path.clear();
    } else if (!path.empty()) {
      return;
    }
  }
  if (const Result<void> opened = loader->open_archive({}); !opened.ok()) {
    warn(fmt::format("pipelines of {} cannot be archived: {}", device.name,
                     opened.error().message()));
  }
}

void Store::State::write_archive() {
  const std::lock_guard lock(loading);
  if (!is_archive_open || !uses_disk() || options.cache->mode() != cache::Mode::kOn) return;
  const Result<cache::Key> key = archive_key(options, device);
  if (!key.ok()) return;
  Result<cache::ScratchFolder> scratch = options.cache->make_scratch(*key);
  if (!scratch.ok()) return;
  const std::string path = scratch->path() + "/archive";
  const Result<bool> written = loader->write_archive(path);
  if (!written.ok()) {
    warn(fmt::format("pipelines of {} cannot be archived: {}", device.name,
                     written.error().message()));
    return;
  }
  if (!*written) return;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!bytes.empty()) {
    options.cache->put(*key, PayloadKind::kBinaryArchive, {}, std::as_bytes(std::span(bytes)));
  }
}

// The candidate becomes the work's result, or a verdict on its tier.
void Store::State::finish(Work& work, Candidate candidate) {
  const std::lock_guard lock(loading);
  // Whoever waits for the code has it by now, and all others find the pipeline.
  struct Forget {
    Store::State& state;
    const std::optional<cache::Key>& key;
    ~Forget() {
      if (key) state.compiles.forget(key->hash());
    }
  } const forget{*this, candidate.key};
  if (is_answered(work)) return;  // another thread was faster
  open_archive();
  Loaded loaded = load(work, candidate);
  if (loaded.pipeline) self_test(work, candidate, loaded);
  if (loaded.is_device_failure) {
    settle(work, fail(ErrorCode::kDevice, "GPU kernel {}: {} failed: {}", work.name, device.name,
                      loaded.reason));
    warn(work.result->error().message());
    return;
  }
  if (!loaded.pipeline) {
    work.verdicts.push_back({candidate.tier, loaded.reason});
    if (loaded.is_self_test) ++work.rejections;
    work.bad_file = candidate.file;
    if (candidate.key) modules.erase(candidate.key->hash());
    if (candidate.file && options.cache) options.cache->remove(*candidate.file);
    warn(fmt::format("GPU kernel {}: code of the tier '{}' for {} is not used: {} (compiler: {})",
                     work.name, name_of(candidate.tier), device.name, loaded.reason,
                     candidate.compiler));
    return;
  }
  loaded.pipeline->report.not_used = work.verdicts;
  const bool is_hit = candidate.tier == Tier::kEmbedded || candidate.tier == Tier::kDisk;
  if (options.switches.verify && is_hit) {
    verify(work, candidate, *loaded.pipeline);
    if (work.result) return;
  }
  settle(work, PipelinePtr(std::move(loaded.pipeline)));
}

Store::State::Loaded Store::State::load(const Work& work, const Candidate& candidate) {
  Loaded loaded;
  loaded.reason = known_bad_reason(work, candidate);
  if (!loaded.reason.empty()) {
    loaded.is_self_test = true;
    return loaded;
  }
  auto pipeline = std::make_shared<Pipeline>();
  PipelineReport& report = pipeline->report;
  report.kernel = work.kernel->code.stem;
  report.variant = work.kernel->code.variant;
  report.constants = work.constants;
  if (!work.kernel->load_constants.empty()) {
    report.constants += (report.constants.empty() ? "" : ";");
    report.constants += canonical_text(work.kernel->load_constants);
  }
  report.target =
      candidate.image ? std::string(embedded.images[*candidate.image].target) : work.target;
  report.tier = candidate.tier;
  report.compiler = candidate.compiler;
  report.bytes = candidate.bytes.size();
  if (candidate.key) report.key = candidate.key->hash();
  report.compile_ms = candidate.compile_ms;
  report.diagnostics = candidate.diagnostics;

  const Clock::time_point start = Clock::now();
  const Result<std::shared_ptr<Module>> module = load_module(work, candidate);
  if (!module.ok()) {
    loaded.reason = module.error().message();
    loaded.is_device_failure = module.error().code() == ErrorCode::kDevice;
    return loaded;
  }
  pipeline->module = *module;
  for (const EntryPoint& expected : work.kernel->entry_points) {
    Result<LoadedEntry> found = loader->find(**module, expected, work.kernel->load_constants);
    if (!found.ok()) {
      loaded.reason = found.error().message();
      loaded.is_device_failure = found.error().code() == ErrorCode::kDevice;
      return loaded;
    }
    loaded.reason = check_entry(expected, *found);
    if (!loaded.reason.empty()) return loaded;
    pipeline->entries.push_back(std::move(found).value());
  }
  report.load_ms = ms_since(start);
  loaded.pipeline = std::move(pipeline);
  return loaded;
}

// A library is loaded once for all pipelines from it. The failure of an embedded one is remembered.
Result<std::shared_ptr<Module>> Store::State::load_module(const Work& work,
                                                          const Candidate& candidate) {
  if (!candidate.image) {
    if (!candidate.key) return loader->load(candidate.kind, candidate.bytes, work.name);
    std::weak_ptr<Module>& known = modules[candidate.key->hash()];
    if (std::shared_ptr<Module> module = known.lock()) return module;
    Result<std::shared_ptr<Module>> module =
        loader->load(candidate.kind, candidate.bytes, work.name);
    if (module.ok()) known = *module;
    return module;
  }
  const auto at = images.find(*candidate.image);
  if (at != images.end()) return at->second;
  const EmbeddedImage& image = embedded.images[*candidate.image];
  Result<std::shared_ptr<Module>> module =
      loader->load(candidate.kind, candidate.bytes, std::string(image.name));
  images.emplace(*candidate.image, module);
  return module;
}

std::string Store::State::check_entry(const EntryPoint& expected, const LoadedEntry& found) const {
  if (expected.params.bytes != 0) {
    if (!found.params) {
      return fmt::format("it does not export {}", params_mark_name(expected.name));
    }
    if (*found.params != expected.params) {
      return fmt::format(
          "the parameters of {} have {} bytes and the layout {:016x}, the host's {} bytes and "
          "{:016x}",
          expected.name, found.params->bytes, found.params->layout, expected.params.bytes,
          expected.params.layout);
    }
  }
  const LaunchNeeds& launch = expected.launch;
  if (found.most_threads < launch.threads || device.most_threads < launch.threads) {
    return fmt::format("{} is launched with {} threads a group, {} are possible", expected.name,
                       launch.threads, std::min(found.most_threads, device.most_threads));
  }
  if (found.static_shared + launch.dynamic_shared > device.most_shared) {
    return fmt::format("{} needs {} bytes of shared memory, the device has {}", expected.name,
                       found.static_shared + launch.dynamic_shared, device.most_shared);
  }
  const std::uint32_t width = found.simd_width != 0 ? found.simd_width : device.simd_width;
  if (launch.simd_width != 0 && width != launch.simd_width) {
    return fmt::format("{} is written for SIMD groups of {}, here they have {}", expected.name,
                       launch.simd_width, width);
  }
  return {};
}

std::string Store::State::known_bad_reason(const Work& work, const Candidate& candidate) const {
  for (const KnownBad& row : options.known_bad) {
    const bool is_it =
        (row.target.empty() || row.target == work.target) &&
        (row.compiler.empty() || candidate.compiler.find(row.compiler) != std::string::npos) &&
        row.kernel == work.kernel->code.stem &&
        (row.variant.empty() || row.variant == work.kernel->code.variant);
    if (is_it) return fmt::format("it is known to be bad: {}", row.reason);
  }
  return {};
}

// The artefact's key, the device, and the test's own version. For embedded code the bytes stand in
// for a compiler.
std::optional<cache::Key> Store::State::record_key(const Work& work, const Candidate& candidate) {
  std::optional<cache::Key> key = candidate.key;
  if (!key) {
    std::string& hash = image_hashes[*candidate.image];
    if (hash.empty()) hash = sha256_hex(candidate.bytes);
    Result<cache::Key> made = key_for(work, "embedded sha256 " + hash);
    if (!made.ok()) return std::nullopt;
    key = std::move(made).value();
  }
  std::string entries;
  for (const EntryPoint& entry : work.kernel->entry_points) entries += entry.name + ",";
  Result<cache::Key> record =
      key->with({{"device", device.name},
                 {"entries", entries},
                 {"load_constants", canonical_text(work.kernel->load_constants)},
                 {"selftest", work.kernel->self_test.version}});
  if (!record.ok()) return std::nullopt;
  return std::move(record).value();
}

void Store::State::self_test(const Work& work, const Candidate& candidate, Loaded& loaded) {
  PipelineReport& report = loaded.pipeline->report;
  const SelfTest& test = work.kernel->self_test;
  if (!test.run) return;
  if (options.switches.self_test == SelfTestMode::kOff) {
    report.self_test = SelfTestState::kOff;
    return;
  }
  const bool has_records = options.cache != nullptr && options.switches.cache != cache::Mode::kOff;
  const bool asks_record =
      has_records && options.switches.self_test == SelfTestMode::kOnce && !options.switches.verify;
  const std::optional<cache::Key> record =
      has_records ? record_key(work, candidate) : std::optional<cache::Key>();
  if (asks_record && record &&
      options.cache->get(*record, PayloadKind::kSelfTest).entry.has_value()) {
    report.self_test = SelfTestState::kRecorded;
    return;
  }
  const Clock::time_point start = Clock::now();
  const Result<SelfTestOutcome> outcome = test.run(*loaded.pipeline);
  report.self_test_ms = ms_since(start);
  if (!outcome.ok()) {
    loaded.reason = "the self-test could not be run: " + outcome.error().message();
    loaded.is_device_failure = true;
    loaded.pipeline.reset();
    return;
  }
  if (!outcome->passed) {
    loaded.reason =
        fmt::format("the self-test failed: error {:.3g}, allowed {:.3g}{}{}", outcome->error,
                    outcome->tolerance, outcome->detail.empty() ? "" : ": ", outcome->detail);
    loaded.is_self_test = true;
    loaded.pipeline.reset();
    return;
  }
  report.self_test = SelfTestState::kPassed;
  report.self_test_error = outcome->error;
  if (record) {
    const std::string text = fmt::format("passed\nerror={}\ntolerance={}\ndigest={}\n",
                                         outcome->error, outcome->tolerance, outcome->digest);
    options.cache->put(*record, PayloadKind::kSelfTest, {}, std::as_bytes(std::span(text)));
  }
}

// TERN_KERNEL_VERIFY: the hit beside the same kernel from its sources.
void Store::State::verify(Work& work, const Candidate& candidate, const Pipeline& hit) {
  for (const Tier tier : {Tier::kOffline, Tier::kRuntime, Tier::kDriver}) {
    Compiler* compiler = compiler_of(tier);
    std::string why;
    if (compiler == nullptr) continue;
    const Result<std::string> version = version_for(work, *compiler, why);
    const bool is_same_compiler = version.ok() && *version == candidate.compiler;
    if (!version.ok() || (candidate.key && !is_same_compiler)) continue;
    const Result<cache::Key> key = key_for(work, *version);
    if (!key.ok()) continue;
    const Outcome made = compile_now(work, *compiler, *key, false);
    std::string difference = made.result.error;
    if (made.bytes) {
      Candidate rebuilt;
      rebuilt.tier = tier;
      rebuilt.kind = made.result.artefact->kind;
      rebuilt.owned = made.bytes;
      rebuilt.bytes = *made.bytes;
      rebuilt.compiler = *version;
      const Loaded loaded = load(work, rebuilt);
      difference =
          loaded.pipeline ? compare(work, hit, *loaded.pipeline, is_same_compiler) : loaded.reason;
    }
    if (difference.empty()) return;
    settle(work,
           fail(ErrorCode::kInternal,
                "GPU kernel {}: the code of the tier '{}' and the same kernel rebuilt behave "
                "differently: {}\nkey of the hit:\n{}\nkey of the rebuilt one:\n{}",
                work.name, name_of(candidate.tier), difference,
                candidate.key ? candidate.key->text() : std::string("(embedded)"), key->text()));
    warn(work.result->error().message());
    return;
  }
}

// Behaviour, not bytes: a compiler's output may differ from run to run.
std::string Store::State::compare(const Work& work, const Pipeline& hit, const Pipeline& rebuilt,
                                  bool is_same_compiler) const {
  if (!work.kernel->self_test.run) return {};
  const Result<SelfTestOutcome> first = work.kernel->self_test.run(hit);
  const Result<SelfTestOutcome> second = work.kernel->self_test.run(rebuilt);
  if (!first.ok()) return first.error().message();
  if (!second.ok()) return second.error().message();
  if (first->passed != second->passed) {
    return fmt::format("the self-test of the hit {}, of the rebuilt one {}",
                       first->passed ? "passes" : "fails", second->passed ? "passes" : "fails");
  }
  if (is_same_compiler && first->digest != second->digest) {
    return fmt::format("the results are {} and {}", first->digest, second->digest);
  }
  return {};
}

}  // namespace tern::gpu
