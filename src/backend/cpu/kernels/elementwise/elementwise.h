// Elementwise helpers on rows of floats: add, copy and gather rows, look for NaN and Inf.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu_features.h"

namespace tern::cpu {

struct AddArgs {
  const float* a = nullptr;  // [rows][width]
  std::int64_t a_row_stride = 0;
  const float* b = nullptr;  // [rows][width]
  std::int64_t b_row_stride = 0;
  float* y = nullptr;  // [rows][width]; may be a or b exactly (equal stride)
  std::int64_t y_row_stride = 0;
  std::int64_t width = 0;
};

// y = a + b for rows [row_begin, row_end). Class E. Threads: any split of rows.
using AddFn = void (*)(const AddArgs& args, int row_begin, int row_end);

// x holds NaN or Inf in rows [row_begin, row_end) of `width` floats.
using HasNonFiniteFn = bool (*)(const float* x, std::int64_t row_stride, std::int64_t width,
                                int row_begin, int row_end);

struct ElementwiseVariant {
  const char* name;
  CpuFeatures needs;
  AddFn add;
  HasNonFiniteFn has_non_finite;
};

// Fastest first; the last needs nothing.
[[nodiscard]] std::span<const ElementwiseVariant> elementwise_variants();

// y[i] = x[rows[i]] for i in [begin, end); x has x_rows rows. Class E. A row number out of range
// writes zeros, reads nothing, and makes the result false. x and y do not overlap.
[[nodiscard]] bool gather_rows(const float* x, std::int64_t x_row_stride, std::int64_t x_rows,
                               const std::uint32_t* rows, float* y, std::int64_t y_row_stride,
                               std::int64_t width, int begin, int end);

// y[r] = x[r] for rows [row_begin, row_end); x and y do not overlap.
void copy_rows(const float* x, std::int64_t x_row_stride, float* y, std::int64_t y_row_stride,
               std::int64_t width, int row_begin, int row_end);

}  // namespace tern::cpu
