// Weights in the CPU's own layouts: one copy, read by decode, prefill, lookup and the f32 path
// alike.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernels/block_product/block_product.h"
#include "backend/cpu/kernels/packed/packed.h"
#include "base/aligned_buffer.h"
#include "base/thread_pool.h"

namespace tern::cpu {

struct ResidentPacked {
  PackedLayout layout;
  PackedView view;
};
struct ResidentDense {
  quant::Format format = quant::Format::kF32;
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  const std::byte* data = nullptr;
};
struct ResidentVector {
  std::int64_t width = 0;
  const float* data = nullptr;
};
using Resident = std::variant<ResidentPacked, BlockMatrix, ResidentDense, ResidentVector>;

// Bytes and name of the layout of one weight: a pure function of what the declaration says and the
// tiling.
struct LayoutEstimate {
  std::uint64_t bytes = 0;
  std::string name;  // "rows32 binary", "rows8 q4_1", "rows f16", "vector f32"
};
// uses_code3: a 2-bit format's codes contain a 3, which only its data tells (ternary models never
// have one).
[[nodiscard]] LayoutEstimate estimate_layout(const program::WeightDecl& decl, PackedTiling tiling,
                                             bool uses_code3 = false);

// Whether only its data tells which layout a weight gets.
[[nodiscard]] bool may_use_code3(const program::WeightDecl& decl);

class CpuWeights : public backend::ResidentWeights {
 public:
  // Repacks in parallel over `pool`. Errors as Device::upload.
  [[nodiscard]] static Result<std::shared_ptr<const CpuWeights>> make(const program::WeightSet& set,
                                                                      PackedTiling tiling,
                                                                      ThreadPool& pool,
                                                                      const ProgressFn& progress,
                                                                      const CancelToken& cancel);

  [[nodiscard]] std::uint64_t bytes() const override { return memory_.size(); }
  [[nodiscard]] std::span<const std::byte> memory() const {
    return {memory_.data(), memory_.size()};
  }
  // How packed weights lie: a plan for another tiling cannot read them.
  [[nodiscard]] PackedTiling tiling() const { return tiling_; }
  [[nodiscard]] const Resident& at(program::WeightId id) const { return weights_[id]; }

 private:
  AlignedBuffer memory_;
  PackedTiling tiling_ = PackedTiling::kBytes;
  std::vector<Resident> weights_;
};

}  // namespace tern::cpu
