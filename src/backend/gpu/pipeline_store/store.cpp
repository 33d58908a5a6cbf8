#include "backend/gpu/pipeline_store/store.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "backend/gpu/pipeline_store/store_state.h"

namespace tern::gpu {
namespace {

bool is_compile_tier(Tier tier) { return tier != Tier::kEmbedded && tier != Tier::kDisk; }

std::vector<Work*> pointers_of(std::vector<Work>& works) {
  std::vector<Work*> pointers;
  for (Work& work : works) pointers.push_back(&work);
  return pointers;
}

// Calls job(i) for every i on up to `threads` threads, while this thread runs `watching` after
// each one and at the deadline of the watch.
template <class Job>
void run_on_threads(std::size_t jobs, std::size_t threads, CompileWatch& watch, const Job& job) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t finished = 0;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs; i = next++) {
      job(i);
      const std::lock_guard lock(mutex);
      ++finished;
      changed.notify_one();
    }
  };
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < std::min(jobs, std::max<std::size_t>(threads, 1)); ++i) {
    workers.emplace_back(work);
  }
  std::size_t told = 0;
  std::unique_lock lock(mutex);
  while (finished < jobs) {
    const auto has_news = [&] { return finished > told; };
    if (watch.has_started()) {
      changed.wait(lock, has_news);
    } else {
      changed.wait_until(lock, watch.deadline(), has_news);
    }
    const std::size_t more = finished - told;
    told = finished;
    lock.unlock();
    watch.look();
    if (more > 0) watch.done(more);
    lock.lock();
  }
  lock.unlock();
  if (finished > told) watch.done(finished - told);
}

}  // namespace

Store::Store(DeviceDescription device, std::shared_ptr<Loader> loader, EmbeddedTable embedded,
             std::vector<std::shared_ptr<Compiler>> compilers, StoreOptions options)
    : state_(std::make_unique<State>()) {
  state_->device = std::move(device);
  state_->loader = std::move(loader);
  state_->embedded = embedded;
  state_->compilers = std::move(compilers);
  state_->options = std::move(options);
}

Store::~Store() = default;

const DeviceDescription& Store::device() const { return state_->device; }

std::vector<Result<PipelinePtr>> Store::resolve(std::span<const KernelDescription> kernels) {
  std::vector<Work> works;
  works.reserve(kernels.size());
  for (const KernelDescription& kernel : kernels) {
    works.push_back(state_->begin(kernel, state_->device.target));
  }
  std::vector<Work*> open = pointers_of(works);
  {
    CompileWatch watch(state_->options, state_->device.name);
    for (;;) {
      std::erase_if(open, [this](Work* work) { return state_->is_answered(*work); });
      if (open.empty()) break;
      state_->advance(open, watch);
    }
  }
  state_->write_archive();
  std::vector<Result<PipelinePtr>> results;
  results.reserve(works.size());
  for (Work& work : works) results.push_back(std::move(*work.result));
  return results;
}

Result<PipelinePtr> Store::resolve(const KernelDescription& kernel) {
  return std::move(resolve(std::span(&kernel, 1)).front());
}

Result<PipelinePtr> Store::resolve_one_of(std::span<const KernelDescription> variants) {
  std::vector<Work> works;
  works.reserve(variants.size());
  for (const KernelDescription& variant : variants) {
    works.push_back(state_->begin(variant, state_->device.target));
  }
  CompileWatch watch(state_->options, state_->device.name);
  std::string reasons;
  ErrorCode code = ErrorCode::kUnsupported;
  // A variant goes on through its tiers until its self-test rejects it; then the next one has its
  // turn, and the first one's next tier comes when all have been rejected once.
  for (std::vector<Work*> open = pointers_of(works); !open.empty();) {
    for (Work*& work : open) {
      const std::size_t rejections = work->rejections;
      while (!state_->is_answered(*work) && work->rejections == rejections) {
        state_->advance(std::span(&work, 1), watch);
      }
      if (!state_->is_answered(*work)) continue;
      if (work->result->ok()) {
        state_->write_archive();
        return *work->result;
      }
      if (work->result->error().code() == ErrorCode::kDevice) return work->result->error();
      code = work->result->error().code();
      reasons += (reasons.empty() ? "" : "; ") + work->result->error().message();
      work = nullptr;
    }
    std::erase(open, nullptr);
  }
  return fail(code, "no variant can be used: {}", reasons);
}

std::vector<Result<void>> Store::build_ahead(std::span<const KernelDescription> kernels,
                                             const std::string& target) {
  std::vector<Work> works;
  works.reserve(kernels.size());
  for (const KernelDescription& kernel : kernels) works.push_back(state_->begin(kernel, target));
  CompileWatch watch(state_->options, target);
  std::vector<Work*> open = pointers_of(works);
  for (const Tier tier : state_->options.switches.tiers) {
    if (!is_compile_tier(tier) || open.empty()) continue;
    watch.expect(open.size(), 1000);
    run_on_threads(open.size(), state_->options.threads, watch,
                   [&](std::size_t i) { state_->compile(*open[i], tier); });
    std::erase_if(open, [](const Work* work) { return work->candidate.has_value(); });
  }
  std::vector<Result<void>> results;
  for (Work& work : works) {
    if (!work.candidate) {
      state_->fail_for_good(work);
      results.emplace_back(work.result->error());
    } else if (!work.candidate->file) {
      results.emplace_back(
          fail(ErrorCode::kIo, "kernel {} was compiled, but not kept on disk", work.name));
    } else {
      results.emplace_back();
    }
  }
  return results;
}

std::vector<PipelineReport> Store::reports() const {
  std::vector<PipelineReport> reports;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [id, pipeline] : state_->pipelines) reports.push_back(pipeline->report);
  }
  std::sort(reports.begin(), reports.end(), [](const PipelineReport& a, const PipelineReport& b) {
    return std::tie(a.kernel, a.variant, a.constants) < std::tie(b.kernel, b.variant, b.constants);
  });
  return reports;
}

Work Store::State::begin(const KernelDescription& kernel, const std::string& target) const {
  Work work;
  work.kernel = &kernel;
  work.target = target;
  work.name = display_name(kernel);
  work.source = source_hash(kernel.code.sources);
  work.flags = canonical_text(kernel.code.options);
  work.constants = canonical_text(kernel.code.constants);
  work.id = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n", kernel.code.stem, kernel.code.variant,
                        work.source, work.flags, work.constants,
                        canonical_text(kernel.load_constants), kernel.code.generator, target);
  for (const EntryPoint& entry : kernel.entry_points) {
    work.id += fmt::format("{} {} {} {} {}\n", entry.name, entry.params.bytes, entry.params.layout,
                           entry.launch.threads, entry.launch.dynamic_shared);
  }
  return work;
}

// From memory: a pipeline that is there, or a failure that was told before.
bool Store::State::is_answered(Work& work) const {
  if (work.result) return true;
  const std::lock_guard lock(mutex);
  if (const auto at = pipelines.find(work.id); at != pipelines.end()) {
    work.result = at->second;
  } else if (const auto failed = failures.find(work.id); failed != failures.end()) {
    work.result = failed->second;
  }
  return work.result.has_value();
}

bool Store::State::is_known(const std::string& id) const {
  const std::lock_guard lock(mutex);
  return pipelines.count(id) != 0 || failures.count(id) != 0;
}

void Store::State::settle(Work& work, Result<PipelinePtr> result) {
  const std::lock_guard lock(mutex);
  if (result.ok()) {
    result = pipelines.emplace(work.id, *result).first->second;
  } else {
    failures.emplace(work.id, result.error());
  }
  work.result = std::move(result);
}

void Store::State::fail_for_good(Work& work) {
  std::string reasons;
  for (const TierVerdict& verdict : work.verdicts) {
    reasons +=
        fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", name_of(verdict.tier), verdict.reason);
  }
  if (reasons.empty()) reasons = "no tier is switched on";
  const ErrorCode code = work.rejections > 0 ? ErrorCode::kNumeric : ErrorCode::kUnsupported;
  settle(work, fail(code, "GPU kernel {} cannot be used on {} ({}): {}", work.name, device.name,
                    work.target, reasons));
  warn(work.result->error().message());
}

// One tier for each of the works: embedded and disk here, compilers side by side.
void Store::State::advance(std::span<Work* const> works, CompileWatch& watch) {
  std::vector<Work*> compiling;
  std::int64_t expected_ms = 0;
  for (Work* work : works) {
    if (!has_tiers_left(*work)) {
      fail_for_good(*work);
      continue;
    }
    const Tier tier = options.switches.tiers[work->next];
    if (!is_compile_tier(tier)) {
      try_tier(*work);
      ++work->next;
      continue;
    }
    compiling.push_back(work);
    if (const Compiler* compiler = compiler_of(tier)) expected_ms += compiler->expected_ms();
  }
  // Kernels that are still at a quick tier go first, so that one notice counts all that compile.
  if (compiling.empty() || compiling.size() < works.size()) return;
  // Where there is no compiler, there is nothing to tell.
  std::erase_if(compiling, [this](Work* work) {
    const Tier tier = options.switches.tiers[work->next];
    Compiler* compiler = compiler_of(tier);
    std::string why = "there is none for this device";
    if (compiler != nullptr && version_for(*work, *compiler, why).ok()) return false;
    work->verdicts.push_back({tier, why});
    ++work->next;
    return true;
  });
  // The same kernel twice: one way is enough, the other finds its result.
  std::set<std::string> ids;
  std::erase_if(compiling, [&ids](const Work* work) { return !ids.insert(work->id).second; });
  if (compiling.empty()) return;
  const auto threads = static_cast<std::int64_t>(std::max<std::size_t>(options.threads, 1));
  watch.expect(compiling.size(), expected_ms / threads);
  run_on_threads(compiling.size(), options.threads, watch, [&](std::size_t i) {
    compile(*compiling[i], options.switches.tiers[compiling[i]->next]);
  });
  for (Work* work : compiling) {
    ++work->next;
    if (!work->candidate) continue;
    Candidate candidate = std::move(*work->candidate);
    work->candidate.reset();
    finish(*work, std::move(candidate));
  }
}

void Store::State::warn(const std::string& text) {
  {
    const std::lock_guard lock(mutex);
    if (!warned.insert(text).second) return;
  }
  if (options.warn) options.warn(text);
}

CompileWatch::~CompileWatch() {
  try {
    if (has_started_) tell(CompileNotice::Phase::kFinished);
  } catch (...) {  // a notice that cannot be told ends nothing here
  }
}

void CompileWatch::expect(std::size_t kernels, std::int64_t expected_ms) {
  if (total_ == 0) start_ = std::chrono::steady_clock::now();
  // A kernel that comes back for its next tier is still the same kernel.
  total_ = std::max(total_, done_ + kernels);
  if (!has_started_ && expected_ms > options_.notice_after_ms) {
    has_started_ = true;
    tell(CompileNotice::Phase::kStarted);
  }
}

void CompileWatch::done(std::size_t kernels) {
  done_ = std::min(total_, done_ + kernels);
  if (has_started_) tell(CompileNotice::Phase::kProgress);
}

void CompileWatch::look() {
  if (has_started_ || std::chrono::steady_clock::now() < deadline()) return;
  has_started_ = true;
  tell(CompileNotice::Phase::kStarted);
}

double CompileWatch::elapsed_ms() const {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
      .count();
}

void CompileWatch::tell(CompileNotice::Phase phase) {
  if (!options_.notice) return;
  CompileNotice notice{phase, done_, total_, device_, elapsed_ms(), {}};
  notice.text = phase == CompileNotice::Phase::kFinished
                    ? fmt::format("compiled {} GPU kernels for {} in {:.1f} s", done_, device_,
                                  notice.elapsed_ms / 1000)
                    : fmt::format("compiling GPU kernels for {}: {} of {} done (this happens once)",
                                  device_, done_, total_);
  options_.notice(notice);
}

}  // namespace tern::gpu
