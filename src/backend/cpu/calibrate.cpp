// Measures the products of this processor against each other, and the rates of the cost model.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "backend/choice/measure.h"
#include "backend/cpu/calibration_stage.h"
#include "backend/cpu/device.h"
#include "backend/cpu/read_bandwidth.h"
#include "base/cpu_topology.h"
#include "base/progress.h"

namespace tern::cpu {
namespace {

using backend::Bytes;
using backend::Contender;
using backend::Flop;
using backend::Problem;
using backend::Seconds;
using Clock = std::chrono::steady_clock;

// A chain of dependent additions takes as many cycles as it has links, whatever else is in the
// caches: the best of several short ones shows the clock, and a neighbour does not.
class CpuProbe final : public backend::MachineProbe {
 public:
  [[nodiscard]] backend::MachineState state() override {
    constexpr int kTries = 5;
    double best = 0;
    for (int i = 0; i < kTries; ++i) best = std::max(best, links_per_second());
    return {best, temperature()};
  }

  // The second number of schedstat: nanoseconds on a run queue.
  [[nodiscard]] Seconds waited() override {
    double nanoseconds = 0;
    std::error_code ignored;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
      std::ifstream file(task.path() / "schedstat");
      double ran = 0;
      double waited = 0;
      if (file >> ran >> waited) nanoseconds += waited;
    }
    return Seconds(nanoseconds * 1e-9);
  }

 private:
  static double links_per_second() {
    constexpr std::uint64_t kLinks = 60000;
    std::uint64_t sum = 1;
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < kLinks; ++i) {
      sum += i;
#if defined(__GNUC__)
      __asm__ volatile("" : "+r"(sum));
#endif
    }
    const std::chrono::duration<double> taken = Clock::now() - start;
    return static_cast<double>(kLinks) / std::max(taken.count(), 1e-9);
  }
  static double temperature() {
    std::ifstream file("/sys/class/thermal/thermal_zone0/temp");
    double thousandths = 0;
    return file >> thousandths && thousandths > 0 ? thousandths / 1000 : 0;
  }
};

// Copies of one matrix, in turns, over more than the last cache: a decode step reads every weight
// once and finds none of them in a cache.
std::uint64_t rotation_bytes(bool is_quick) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  constexpr std::uint64_t kQuick = std::uint64_t{384} << 20;
  std::uint64_t cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long size = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (size > 0) cache = static_cast<std::uint64_t>(size);
#endif
  return std::clamp(cache * 2, kLeast, is_quick ? kQuick : kMost);
}

// A processor for each thread; empty: as the system decides. Two of our threads on one, as a system
// likes to place them, would be measured as a slow kernel.
std::vector<int> processors_for(int threads) {
  std::vector<int> cores = read_topology().performance_cores;
  if (static_cast<int>(cores.size()) < threads) return {};
  cores.resize(static_cast<std::size_t>(threads));
  return cores;
}

// Keeps the calling thread on one processor while it lives.
class PinnedCaller {
 public:
  explicit PinnedCaller([[maybe_unused]] const std::vector<int>& cpus) {
#if defined(__linux__)
    if (cpus.empty()) return;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(static_cast<unsigned>(cpus[0]), &own);
    has_saved_ = ::sched_getaffinity(0, sizeof saved_, &saved_) == 0 &&
                 ::sched_setaffinity(0, sizeof own, &own) == 0;
#endif
  }
  ~PinnedCaller() {
#if defined(__linux__)
    if (has_saved_) (void)::sched_setaffinity(0, sizeof saved_, &saved_);
#endif
  }
  PinnedCaller(const PinnedCaller&) = delete;
  PinnedCaller& operator=(const PinnedCaller&) = delete;

#if defined(__linux__)
 private:
  cpu_set_t saved_{};
  bool has_saved_ = false;
#endif
};

Seconds section_time(ThreadPool& pool) {
  constexpr int kSections = 2000;
  const auto start = Clock::now();
  for (int i = 0; i < kSections; ++i)
    pool.parallel_for(pool.threads(), 1, [](std::int64_t, std::int64_t, int) {});
  return Seconds(std::chrono::duration<double>(Clock::now() - start).count() / kSections);
}

class Calibration {
 public:
  Calibration(const backend::DeviceProfile& profile, ThreadPool& pool, const VendorParts& vendor,
              const backend::CalibrationRequest& request, const CancelToken& cancel)
      : profile_(profile), pool_(pool), vendor_(vendor), request_(request), cancel_(cancel) {
    rules_.have = profile.cpu;
    rules_.vendor = profile.vendor;
    rules_.tiling = packed_tiling(profile.cpu, {});
    if (request.previous) outcome_.table = *request.previous;
  }

  Result<backend::CalibrationOutcome> run(const ProgressFn& progress) {
    TERN_TRY(measure_rates());
    ProgressMeter meter(progress, "measuring products", "shapes", request_.problems.size());
    for (const Problem& problem : request_.problems) {
      if (cancel_.requested()) return fail(ErrorCode::kCancelled, "the calibration was cancelled");
      const Result<void> measured = measure_problem(problem);
      if (!measured.ok() && measured.error().code() == ErrorCode::kCancelled)
        return measured.error();
      if (measured.ok()) {
        outcome_.measured.push_back(problem);
      } else {
        outcome_.skipped.push_back(
            fmt::format("{}: {}", describe(problem), measured.error().message()));
      }
      meter.add(1);
    }
    meter.finish();
    return std::move(outcome_);
  }

 private:
  // Once per device: what a section costs, what memory gives, and the peak by the fastest product
  // of a square that is large enough.
  Result<void> measure_rates() {
    backend::DeviceRates rates = rates_of(profile_);
    rates.launch = section_time(pool_);
    const double gbps = measure_read_gbps(pool_);
    if (gbps > 0) rates.bandwidth = backend::gigabytes_per_second(gbps);
    constexpr std::int64_t kSide = 1024;
    constexpr std::int64_t kRows = 256;
    const ProductShape square{quant::Format::kF32, kSide, kSide, true};
    outcome_.table.set_rates(rates);
    TERN_ASSIGN(const backend::Measurement m, measure_shape(square, kRows, 0));
    constexpr double kShareOfTheBest = 0.8;  // no product reaches the peak itself
    double best = 0;
    for (const backend::VariantTime& t : m.times)
      best = std::max(best, t.rate.value() / kShareOfTheBest);
    const backend::FlopPerSecond peak(best);
    if (best > 0) rates.peak = {peak, peak, peak, 2 * peak};
    outcome_.table.set_rates(rates);
    return {};
  }

  Result<void> measure_problem(const Problem& problem) {
    const std::optional<ProductShape> shape = shape_of(problem);
    if (!shape) return fail(ErrorCode::kUnsupported, "is no product of this device");
    TERN_ASSIGN(backend::Measurement m,
                measure_shape(*shape, problem.m, rotation_bytes(request_.is_quick)));
    backend::TableRow row;
    row.problem = problem_of(*shape, problem.m, rules_.tiling);
    row.times = std::move(m.times);
    row.before = m.before;
    row.after = m.after;
    row.date = request_.date;
    row.revision = request_.revision;
    outcome_.table.put(std::move(row));
    return {};
  }

  Result<backend::Measurement> measure_shape(const ProductShape& shape, std::int64_t rows,
                                             std::uint64_t rotation) {
    if (!weights_ || weights_shape_ != shape || rotation_ != rotation) {
      weights_.reset();
      TERN_ASSIGN(CalibrationWeights made,
                  CalibrationWeights::make(shape, rules_.tiling, rotation));
      weights_ = std::move(made);
      weights_shape_ = shape;
      rotation_ = rotation;
    }
    CalibrationStage stage(shape, rows, *weights_, pool_);
    TERN_TRY(stage.prepare(rules_, vendor_));
    const ProductCandidates all = product_candidates(shape, rows, rules_);
    std::vector<Seconds> predicted;
    Seconds best(1e9);
    for (const backend::Candidate& c : all.candidates) {
      predicted.push_back(predict(c.work, outcome_.table.rates()).total);
      if (c.refusal.empty()) best = std::min(best, predicted.back());
    }
    std::vector<Contender> contenders;
    for (std::size_t i = 0; i < all.candidates.size(); ++i) {
      // What the prior puts this far behind is the portable code, which takes minutes.
      constexpr double kFarBehind = 12;
      const backend::Candidate& c = all.candidates[i];
      if (!c.refusal.empty() || predicted[i] > kFarBehind * best) continue;
      contenders.push_back(
          {std::string(c.name), predicted[i], c.work.bytes, c.work.flop,
           [&stage, &variant = all.variants[i]](int chain) { return stage.run(variant, chain); }});
    }
    backend::MeasureOptions options;
    if (request_.is_quick) options.budget = Seconds(0.3);
    if (request_.is_quick) options.most_rounds = 9;
    return backend::measure(contenders, options, probe_, cancel_);
  }

  const backend::DeviceProfile& profile_;
  ThreadPool& pool_;
  const VendorParts& vendor_;
  const backend::CalibrationRequest& request_;
  const CancelToken& cancel_;
  ProductRules rules_;
  CpuProbe probe_;
  std::optional<CalibrationWeights> weights_;
  ProductShape weights_shape_;
  std::uint64_t rotation_ = 0;
  backend::CalibrationOutcome outcome_;
};

}  // namespace

Result<backend::CalibrationOutcome> CpuDevice::calibrate(const backend::CalibrationRequest& request,
                                                         const ProgressFn& progress,
                                                         const CancelToken& cancel) {
  TERN_TRY(check_process());
  const std::vector<int> cpus = processors_for(std::max(profile_.cores, 1));
  ThreadPool pool(std::max(profile_.cores, 1), {.cpus = cpus});
  // After the threads: a thread begins on the processors of the one that made it.
  const PinnedCaller pinned(cpus);
  const VendorParts vendor{.library = library_, .pool = pool, .device = number_};
  return Calibration(profile_, pool, vendor, request, cancel).run(progress);
}

}  // namespace tern::cpu
