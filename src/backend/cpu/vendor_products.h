// Products of dense weights through the vendor bridge: the problem that a step poses, and the
// memory that solving it takes.
#pragma once

#include <cstdint>

#include "backend/cpu/prior.h"
#include "backend/vendor_gemm.h"

namespace tern::cpu {

// y = x W^T (+ bias) (+ residual), in the words of the bridge. Offsets are those of the memory.
struct VendorOperand {
  backend::AllocationRef memory = nullptr;
  std::uint64_t offset = 0;      // bytes
  std::uint64_t row_stride = 0;  // elements
};
struct VendorProblem {
  ProductShape shape;
  VendorOperand x, w, y;
  VendorOperand residual;  // memory nullptr: none; in place when it is y
  VendorOperand bias;      // memory nullptr: none
};
[[nodiscard]] backend::GemmProblem gemm_problem(const VendorProblem& p, std::int64_t rows);

// Bytes of workspace for `threads` threads and any number of rows up to most_rows, from the plans
// of the bridge itself. Needs no library. has_bias, has_residual: an epilogue of our own.
[[nodiscard]] Result<std::uint64_t> vendor_workspace(const ProductShape& shape,
                                                     std::int64_t most_rows, bool has_bias,
                                                     bool has_residual, int threads);

}  // namespace tern::cpu
