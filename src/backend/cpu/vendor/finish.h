// The one pass over a tile of sums: C, bias, activation, rounding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/vendor_gemm.h"
#include "tensor/dtype.h"

namespace tern::cpu {

// d[r][j] = activation(sums[r][j] + beta c[r][j] + bias[j]), computed in f32 and rounded once.
// sums null: 0; it may be d itself when d is f32. c null: not read. c may be d itself. Strides in
// elements of the matrix they belong to.
struct FinishArgs {
  std::int64_t rows = 0, columns = 0;
  const float* sums = nullptr;
  std::int64_t sums_row_stride = 0;
  float beta = 0.0f;
  const std::byte* c = nullptr;
  std::int64_t c_row_stride = 0;
  const std::byte* bias = nullptr;
  Dtype bias_dtype = Dtype::kF32;
  backend::Activation activation = backend::Activation::kNone;
  std::byte* d = nullptr;
  std::int64_t d_row_stride = 0;
  Dtype dtype = Dtype::kF32;  // of c and d
};
void finish_tile(const FinishArgs& args) noexcept;

}  // namespace tern::cpu
