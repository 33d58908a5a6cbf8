// The operands of a calibration: weights of random numbers past the caches, and one problem's
// buffers with the steps that an executable would run on them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "backend/choice/units.h"
#include "backend/cpu/executable.h"
#include "backend/cpu/product_choice.h"
#include "backend/cpu/steps.h"
#include "base/aligned_buffer.h"
#include "base/cancellation.h"

namespace tern::cpu {

// A matrix of random numbers in the layout that kernels read, as often as `rotation` bytes hold it,
// so that a kernel that takes the next one every time finds nothing in a cache.
class CalibrationWeights {
 public:
  [[nodiscard]] static Result<CalibrationWeights> make(const ProductShape& shape,
                                                       PackedTiling tiling, std::uint64_t rotation);

  [[nodiscard]] std::byte* next() { return memory_.data() + turn_++ % count_ * stride_; }
  [[nodiscard]] std::byte* base() { return memory_.data(); }
  [[nodiscard]] std::uint64_t bytes() const { return memory_.size(); }
  [[nodiscard]] const PackedLayout& layout() const { return layout_; }

 private:
  Result<void> fill(const ProductShape& shape);

  AlignedBuffer memory_;
  PackedLayout layout_{};
  std::uint64_t stride_ = 0;
  std::uint64_t count_ = 1;
  std::uint64_t turn_ = 0;
};

// One problem. The weights outlive it.
class CalibrationStage {
 public:
  CalibrationStage(const ProductShape& shape, std::int64_t rows, CalibrationWeights& weights,
                   ThreadPool& pool)
      : shape_(shape), rows_(rows), weights_(weights), pool_(pool) {}

  [[nodiscard]] Result<void> prepare(const ProductRules& rules, const VendorParts& vendor);
  // Runs the product `chain` times, as an executable would.
  [[nodiscard]] backend::Seconds run(const ProductVariant& variant, int chain);

 private:
  [[nodiscard]] Result<void> prepare_integers(const ProductRules& rules);
  [[nodiscard]] RowsRef x();
  [[nodiscard]] RowsRef y();
  void run_once(RunContext& ctx, const ProductVariant& variant);
  void run_dense(RunContext& ctx, const ProductVariant& variant);

  ProductShape shape_;
  std::int64_t rows_;
  CalibrationWeights& weights_;
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

}  // namespace tern::cpu
