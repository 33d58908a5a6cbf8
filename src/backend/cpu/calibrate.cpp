// Measures the products of this processor against each other: buffers, contenders, rates.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "backend/choice/measure.h"
#include "backend/cpu/device.h"
#include "backend/cpu/read_bandwidth.h"
#include "backend/cpu/vendor/cpu_vendor_gemm.h"
#include "base/checked.h"
#include "base/float_environment.h"
#include "base/progress.h"
#include "quant/codec.h"

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

// A matrix of random numbers in the layout that kernels read, as often as the rotation holds it.
class Weights {
 public:
  static Result<Weights> make(const ProductShape& shape, PackedTiling tiling,
                              std::uint64_t rotation) {
    Weights w;
    w.layout_ = quant::is_packed(shape.format)
                    ? packed_layout(shape.format, shape.outputs, shape.inputs, false, tiling)
                    : PackedLayout{};
    const std::uint64_t bytes = bytes_of(shape, w.layout_);
    w.stride_ = (bytes + 63) / 64 * 64;
    w.count_ = std::max<std::uint64_t>(1, rotation / w.stride_);
    TERN_ASSIGN(w.memory_, AlignedBuffer::allocate(w.stride_ * w.count_,
                                                   {.huge_pages = true, .what = "weights"}));
    TERN_TRY(w.fill(shape));
    for (std::uint64_t i = 1; i < w.count_; ++i)
      std::memcpy(w.memory_.data() + i * w.stride_, w.memory_.data(), bytes);
    return w;
  }

  [[nodiscard]] std::byte* next() { return memory_.data() + turn_++ % count_ * stride_; }
  [[nodiscard]] std::byte* base() { return memory_.data(); }
  [[nodiscard]] std::uint64_t bytes() const { return memory_.size(); }
  [[nodiscard]] const PackedLayout& layout() const { return layout_; }

 private:
  static std::uint64_t bytes_of(const ProductShape& s, const PackedLayout& layout) {
    switch (quant::info(s.format).kind) {
      case quant::FormatClass::kPacked:
        return layout.bytes();
      case quant::FormatClass::kBlock:
        return block_matrix_bytes(s.format, s.outputs, s.inputs);
      case quant::FormatClass::kDense:
        break;
    }
    return quant::bytes_for(
        s.format, static_cast<std::uint64_t>(s.outputs) * static_cast<std::uint64_t>(s.inputs));
  }

  // A few random rows, over and over: what a kernel does depends on no value.
  Result<void> fill(const ProductShape& s) {
    constexpr std::int64_t kRows = 32;
    const auto row_bytes =
        static_cast<std::int64_t>(quant::bytes_for(s.format, static_cast<std::uint64_t>(s.inputs)));
    std::vector<float> values(static_cast<std::size_t>(kRows * s.inputs));
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, 1);
    for (float& v : values) v = normal(random);
    std::vector<std::byte> rows(static_cast<std::size_t>(kRows * row_bytes));
    for (std::int64_t r = 0; r < kRows; ++r)
      TERN_TRY(quant::encode_row(s.format, values.data() + r * s.inputs, s.inputs,
                                 rows.data() + r * row_bytes));
    for (std::int64_t n = 0; n < s.outputs; n += kRows) {
      const std::int64_t count = std::min(kRows, s.outputs - n);
      switch (quant::info(s.format).kind) {
        case quant::FormatClass::kPacked:
          repack(layout_, {s.format, s.inputs, rows.data(), row_bytes}, 0, count, memory_.data(),
                 n);
          break;
        case quant::FormatClass::kBlock:
          block_pack_rows(s.format, s.outputs, s.inputs, rows.data(), n, count, memory_.data());
          break;
        case quant::FormatClass::kDense:
          std::memcpy(memory_.data() + n * row_bytes, rows.data(),
                      static_cast<std::size_t>(count * row_bytes));
          break;
      }
    }
    return {};
  }

  AlignedBuffer memory_;
  PackedLayout layout_{};
  std::uint64_t stride_ = 0;
  std::uint64_t count_ = 1;
  std::uint64_t turn_ = 0;
};

// One problem's operands, and the steps that the executable would run on them.
class Stage {
 public:
  Stage(const ProductShape& shape, std::int64_t rows, Weights& weights, ThreadPool& pool)
      : shape_(shape), rows_(rows), weights_(weights), pool_(pool) {}

  Result<void> prepare(const ProductRules& rules, const VendorParts& vendor) {
    const auto whole = [](std::int64_t floats) { return round_up(floats, 16); };
    x_stride_ = whole(shape_.inputs);
    y_stride_ = whole(shape_.outputs);
    const auto floats = static_cast<std::uint64_t>((x_stride_ + y_stride_) * rows_);
    TERN_ASSIGN(arena_, AlignedBuffer::allocate(floats * 4, {.what = "activations"}));
    auto* x = reinterpret_cast<float*>(arena_.data());
    std::mt19937 random(11);
    std::normal_distribution<float> normal(0, 1);
    for (std::int64_t i = 0; i < x_stride_ * rows_; ++i) x[i] = normal(random);
    batch_.sequence.resize(static_cast<std::size_t>(rows_));
    TERN_TRY(prepare_integers(rules));
    const bool has_packed = quant::is_packed(shape_.format);
    scratch_bytes_ = has_packed ? kPackedScratchBytes : 0;
    TERN_ASSIGN(scratch_,
                AlignedBuffer::allocate(scratch_bytes_ * static_cast<std::size_t>(pool_.threads()),
                                        {.what = "the kernels' scratch"}));
    if (!vendor.library || product_op(shape_.format) != "dense_product") return {};
    bridge_ = make_cpu_vendor_gemm(vendor.library, pool_, vendor.device, rules.have);
    TERN_ASSIGN(const std::uint64_t bytes,
                vendor_workspace(shape_, rows_, false, false, pool_.threads()));
    TERN_ASSIGN(bridge_context_, CpuEncodeContext::make(vendor.device, bytes));
    arena_memory_ = std::make_shared<const backend::HostAllocation>(vendor.device, arena_.data(),
                                                                    arena_.size());
    weights_memory_ = std::make_shared<const backend::HostAllocation>(
        vendor.device, weights_.base(), weights_.bytes());
    return {};
  }

  Result<Seconds> run(const ProductVariant& variant, int chain) {
    const KernelFloatMode mode;
    RunContext ctx{.pool = pool_,
                   .batch = batch_,
                   .cancel = never_,
                   .pages = nullptr,
                   .worker_scratch = scratch_.data(),
                   .worker_scratch_bytes = scratch_bytes_,
                   .attention_partials = nullptr,
                   .attention_partial_floats = 0,
                   .kv_flags = kv_flags_,
                   .vendor = bridge_.get(),
                   .vendor_context = bridge_context_.get()};
    const auto start = Clock::now();
    for (int i = 0; i < chain; ++i) run_once(ctx, variant);
    return Seconds(std::chrono::duration<double>(Clock::now() - start).count());
  }

 private:
  Result<void> prepare_integers(const ProductRules& rules) {
    if (shape_.is_float) return {};
    const auto* x = reinterpret_cast<const float*>(arena_.data());
    const auto rows = static_cast<std::uint64_t>(rows_);
    if (!quant::is_packed(shape_.format)) {
      TERN_ASSIGN(integers_,
                  AlignedBuffer::allocate(block_activation_row_bytes(shape_.inputs) * rows,
                                          {.what = "integers"}));
      for (const BlockProductVariant& v : block_product_variants()) {
        if (!rules.have.contains(v.needs)) continue;
        v.quantize(x, x_stride_, {shape_.inputs, integers_.data()}, 0, static_cast<int>(rows_));
        return {};
      }
      return {};
    }
    const ActivationLayout layout =
        activation_layout(shape_.inputs, rules.tiling, needs(weights_.layout()));
    TERN_ASSIGN(integers_,
                AlignedBuffer::allocate(static_cast<std::uint64_t>(layout.record_bytes) * rows,
                                        {.what = "integers"}));
    records_ = layout.view(integers_.data());
    for (const PackedVariant& v : packed_variants()) {
      if (!rules.have.contains(v.needs) || (v.tiling != rules.tiling)) continue;
      v.quantize({x, x_stride_, 0, rows_, records_});
      return {};
    }
    return {};
  }

  [[nodiscard]] RowsRef x() {
    return {reinterpret_cast<float*>(arena_.data()), x_stride_, shape_.inputs,
            program::RowAxis::kRows};
  }
  [[nodiscard]] RowsRef y() {
    return {reinterpret_cast<float*>(arena_.data()) + x_stride_ * rows_, y_stride_, shape_.outputs,
            program::RowAxis::kRows};
  }

  void run_once(RunContext& ctx, const ProductVariant& variant) {
    if (variant.packed) {
      ResidentPacked weight{weights_.layout(), weights_.layout().view(weights_.next())};
      PackedLinearStep step;
      step.fns = {{rows_, shape_.is_float ? variant.packed->matmul_f32 : variant.packed->matmul}};
      step.weight = &weight;
      if (shape_.is_float) step.x = x();
      if (!shape_.is_float) step.records = records_;
      step.y = y();
      step.run(ctx);
    } else if (variant.block) {
      const BlockMatrix weight{shape_.format, shape_.outputs, shape_.inputs, weights_.next()};
      BlockLinearStep step;
      step.fns = {{rows_, shape_.is_float ? variant.block->run_f32 : variant.block->run}};
      step.weight = &weight;
      if (shape_.is_float) step.x = x();
      if (!shape_.is_float) step.block = {shape_.inputs, integers_.data()};
      step.y = y();
      step.run(ctx);
    } else {
      run_dense(ctx, variant);
    }
  }

  void run_dense(RunContext& ctx, const ProductVariant& variant) {
    const ResidentDense weight{shape_.format, shape_.outputs, shape_.inputs, weights_.next()};
    DenseLinearStep step;
    step.weight = &weight;
    step.x = x();
    step.y = y();
    step.own = dense_product_variants().back().run;
    step.fns = {{rows_, variant.is_vendor ? nullptr : variant.dense->run}};
    if (variant.is_vendor) {
      step.vendor.shape = shape_;
      step.vendor.x = {arena_memory_, 0, static_cast<std::uint64_t>(x_stride_)};
      step.vendor.y = {arena_memory_, static_cast<std::uint64_t>(x_stride_ * rows_) * 4,
                       static_cast<std::uint64_t>(y_stride_)};
      step.vendor.w = {weights_memory_, static_cast<std::uint64_t>(weight.data - weights_.base()),
                       static_cast<std::uint64_t>(shape_.inputs)};
    }
    step.run(ctx);
  }

  ProductShape shape_;
  std::int64_t rows_;
  Weights& weights_;
  ThreadPool& pool_;
  std::int64_t x_stride_ = 0, y_stride_ = 0;
  AlignedBuffer arena_, integers_, scratch_;
  std::size_t scratch_bytes_ = 0;
  RecordsView records_{};
  program::BatchBlock batch_;
  CancelToken never_;
  std::atomic<std::uint32_t> kv_flags_{0};
  std::unique_ptr<backend::VendorGemm> bridge_;
  std::unique_ptr<CpuEncodeContext> bridge_context_;
  std::shared_ptr<const backend::HostAllocation> arena_memory_, weights_memory_;
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
    double best = 0;
    for (const backend::VariantTime& t : m.times) {
      const bool is_vendor = t.variant == kVendorVariant;
      const double share = is_vendor ? vendor_efficiency(rules_.vendor, rules_.have) : 0;
      for (const DenseProductVariant& v : dense_product_variants())
        if (v.name == t.variant)
          best = std::max(best, t.rate.value() / own_efficiency(v.needs, rules_.have));
      if (is_vendor) best = std::max(best, t.rate.value() / share);
    }
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
      TERN_ASSIGN(Weights made, Weights::make(shape, rules_.tiling, rotation));
      weights_ = std::move(made);
      weights_shape_ = shape;
      rotation_ = rotation;
    }
    Stage stage(shape, rows, *weights_, pool_);
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
  std::optional<Weights> weights_;
  ProductShape weights_shape_;
  std::uint64_t rotation_ = 0;
  backend::CalibrationOutcome outcome_;
};

}  // namespace

Result<backend::CalibrationOutcome> CpuDevice::calibrate(const backend::CalibrationRequest& request,
                                                         const ProgressFn& progress,
                                                         const CancelToken& cancel) {
  TERN_TRY(check_process());
  const VendorParts vendor{.library = library_, .pool = pool_, .device = number_};
  return Calibration(profile_, pool_, vendor, request, cancel).run(progress);
}

}  // namespace tern::cpu
