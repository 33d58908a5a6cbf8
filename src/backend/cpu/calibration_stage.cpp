#include "backend/cpu/calibration_stage.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "backend/cpu/vendor/cpu_vendor_gemm.h"
#include "base/checked.h"
#include "base/float_environment.h"
#include "quant/codec.h"

namespace tern::cpu {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t bytes_of(const ProductShape& s, const PackedLayout& layout) {
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

}  // namespace

Result<CalibrationWeights> CalibrationWeights::make(const ProductShape& shape, PackedTiling tiling,
                                                    std::uint64_t rotation) {
  CalibrationWeights w;
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

// A few random rows, over and over: what a kernel does depends on no value.
Result<void> CalibrationWeights::fill(const ProductShape& s) {
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
        repack(layout_, {s.format, s.inputs, rows.data(), row_bytes}, 0, count, memory_.data(), n);
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

Result<void> CalibrationStage::prepare(const ProductRules& rules, const VendorParts& vendor) {
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
  arena_memory_ =
      std::make_shared<const backend::HostAllocation>(vendor.device, arena_.data(), arena_.size());
  weights_memory_ = std::make_shared<const backend::HostAllocation>(vendor.device, weights_.base(),
                                                                    weights_.bytes());
  return {};
}

backend::Seconds CalibrationStage::run(const ProductVariant& variant, int chain) {
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
  return backend::Seconds(std::chrono::duration<double>(Clock::now() - start).count());
}

Result<void> CalibrationStage::prepare_integers(const ProductRules& rules) {
  if (shape_.is_float) return {};
  const auto* x = reinterpret_cast<const float*>(arena_.data());
  const auto rows = static_cast<std::uint64_t>(rows_);
  if (!quant::is_packed(shape_.format)) {
    TERN_ASSIGN(integers_, AlignedBuffer::allocate(block_activation_row_bytes(shape_.inputs) * rows,
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

void CalibrationStage::run_once(RunContext& ctx, const ProductVariant& variant) {
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

void CalibrationStage::run_dense(RunContext& ctx, const ProductVariant& variant) {
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

RowsRef CalibrationStage::x() {
  return {reinterpret_cast<float*>(arena_.data()), x_stride_, shape_.inputs,
          program::RowAxis::kRows};
}

RowsRef CalibrationStage::y() {
  return {reinterpret_cast<float*>(arena_.data()) + x_stride_ * rows_, y_stride_, shape_.outputs,
          program::RowAxis::kRows};
}

}  // namespace tern::cpu
