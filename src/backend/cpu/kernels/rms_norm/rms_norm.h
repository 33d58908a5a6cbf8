// rms_norm: rows divided by their root mean square and scaled per column; whole rows or head by
// head.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu_features.h"

namespace tern::cpu {

// A row is `heads` runs of `width` consecutive floats; run h of row r starts at x + r *
// x_row_stride + h * width. heads is 1 for an ordinary norm and the number of heads for QK-norm
// (weight is then shared by all heads). Strides are in floats and at least heads * width; any
// alignment.
struct RmsNormArgs {
  const float* x = nullptr;
  std::int64_t x_row_stride = 0;
  const float* weight = nullptr;  // [width]
  float* y = nullptr;             // may be x exactly (equal stride); no other overlap
  std::int64_t y_row_stride = 0;
  int heads = 1;
  int width = 0;
  float eps = 0;
  // Optional first step x = x + residual (class E). Both the sum and its norm are written.
  const float* residual = nullptr;  // or null
  std::int64_t residual_row_stride = 0;
  float* sum =
      nullptr;  // receives x + residual; may be x or residual exactly; null when residual is
  std::int64_t sum_row_stride = 0;
};

// y = x * rsqrt(mean(x^2) + eps) * weight for rows [row_begin, row_end), in f32.
//
// Class F with K = width. A row's bits do not depend on the other rows, and runs are independent.
// The mean square is summed in f64, so that no finite value overflows it. A run that holds NaN
// gives NaN; one with Inf gives NaN where the Inf stands and zeros elsewhere; a zero run gives 0,
// also with eps = 0.
// Threads: any split of rows; nothing outside of the given rows is written.
using RmsNormFn = void (*)(const RmsNormArgs& args, int row_begin, int row_end);

struct RmsNormVariant {
  const char* name;
  CpuFeatures needs;
  RmsNormFn run;
};

// Fastest first; the last needs nothing.
[[nodiscard]] std::span<const RmsNormVariant> rms_norm_variants();

}  // namespace tern::cpu
