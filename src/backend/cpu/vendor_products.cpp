#include "backend/cpu/vendor_products.h"

#include <algorithm>

#include "backend/cpu/vendor/cpu_vendor_gemm.h"
#include "base/thread_pool.h"

namespace tern::cpu {
namespace {

Dtype dtype_of(quant::Format format) {
  switch (format) {
    case quant::Format::kF16:
      return Dtype::kF16;
    case quant::Format::kBf16:
      return Dtype::kBf16;
    default:
      return Dtype::kF32;
  }
}

backend::Operand operand_of(const VendorOperand& o, std::int64_t rows, std::int64_t cols,
                            Dtype dtype) {
  backend::Operand operand;
  operand.memory = o.memory;
  operand.offset = o.offset;
  operand.rows = static_cast<std::uint64_t>(rows);
  operand.cols = static_cast<std::uint64_t>(cols);
  operand.row_stride = o.row_stride;
  operand.dtype = dtype;
  return operand;
}

}  // namespace

backend::GemmProblem gemm_problem(const VendorProblem& p, std::int64_t rows) {
  backend::GemmProblem gemm;
  gemm.op = "linear";
  gemm.a = operand_of(p.x, rows, p.shape.inputs, Dtype::kF32);
  gemm.b = operand_of(p.w, p.shape.outputs, p.shape.inputs, dtype_of(p.shape.format));
  gemm.b.transposed = true;
  gemm.d = operand_of(p.y, rows, p.shape.outputs, Dtype::kF32);
  if (p.residual.memory) {
    gemm.c = operand_of(p.residual, rows, p.shape.outputs, Dtype::kF32);
    gemm.beta = 1;
  }
  if (p.bias.memory) gemm.epilogue.bias = backend::Bias{p.bias.memory, p.bias.offset, Dtype::kF32};
  return gemm;
}

Result<std::uint64_t> vendor_workspace(const ProductShape& shape, std::int64_t most_rows,
                                       bool has_bias, bool has_residual, int threads) {
  // Memory that is not there: a plan looks at sizes alone.
  const std::uint64_t device = backend::next_allocation_id();
  const auto memory = [device] {
    constexpr std::uint64_t kBytes = std::uint64_t{1} << 50;
    return std::make_shared<const backend::HostAllocation>(device, nullptr, kBytes);
  };
  const auto inputs = static_cast<std::uint64_t>(shape.inputs);
  const auto outputs = static_cast<std::uint64_t>(shape.outputs);
  VendorProblem p;
  p.shape = shape;
  p.x = {memory(), 0, inputs};
  p.w = {memory(), 0, inputs};
  p.y = {memory(), 0, outputs};
  if (has_residual) p.residual = {memory(), 0, outputs};
  if (has_bias) p.bias = {memory(), 0, 0};
  ThreadPool alone(1);
  const auto bridge = make_cpu_vendor_gemm(nullptr, alone, device);
  // A tile is at most 512 rows high; beyond them only the number of tiles changes, and the more
  // there are, the less they are cut.
  constexpr std::int64_t kTileRows = 512;
  std::uint64_t bytes = 0;
  for (std::int64_t rows = 1; rows <= most_rows; rows += rows < kTileRows ? 1 : kTileRows) {
    TERN_ASSIGN(const backend::GemmPlan plan, bridge->plan(gemm_problem(p, rows)));
    bytes = std::max(bytes, plan.workspace_bytes);
  }
  TERN_ASSIGN(const backend::GemmPlan plan, bridge->plan(gemm_problem(p, most_rows)));
  return std::max(bytes, plan.workspace_bytes) * static_cast<std::uint64_t>(threads);
}

}  // namespace tern::cpu
