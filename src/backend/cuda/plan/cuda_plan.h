// A plan for a CUDA device: which kernel runs each op, and where everything lies in the arena.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/kernels/kernels.h"
#include "program/passes/place.h"

namespace tern::cuda {

struct CudaPlan : backend::Plan {
  std::vector<program::ViewOf> views;  // by ValueId
  program::BatchLayout block;          // of the device's copy of the batch block
  std::vector<KernelId> variants;      // by op; of products only
  std::uint64_t status_offset = 0;     // in the arena: u32, set by kernels that met a bad index

  [[nodiscard]] std::int64_t rows_of(program::RowAxis axis) const {
    return axis == program::RowAxis::kRows ? program.bucket.rows : program.output_rows;
  }
};

// Pure. Errors: kUnsupported naming the op, its place and its shapes when no CUDA kernel runs it;
// kUsage for a pin that names no variant.
[[nodiscard]] Result<std::shared_ptr<const backend::Plan>> make_cuda_plan(
    const program::Program& program, const backend::DeviceProfile& profile,
    const backend::PlanOptions& options);

// The launches of op number `op`, with offsets into the weights, the arena and the block.
// weight_offset(id): where a weight lies.
[[nodiscard]] std::vector<Launch> bind_op(
    const CudaPlan& plan, std::size_t op,
    const std::function<std::uint64_t(program::WeightId)>& weight_offset);

// "sm_90" -> 90; 0 for what is no CUDA architecture.
[[nodiscard]] int architecture_number(std::string_view architecture);

}  // namespace tern::cuda
