// dense_product: y = x W^T for weights in F32, F16 or BF16 as they lie in the file, activations
// f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu_features.h"
#include "quant/format.h"

namespace tern::cpu {

// W is [outputs][inputs], row-major, its element is the format's (4 or 2 bytes), aligned to its
// element. Strides are in elements. inputs is any number >= 0, outputs any number.
struct DenseProductArgs {
  quant::Format format = quant::Format::kF32;  // kF32, kF16 or kBf16
  const std::byte* w = nullptr;
  std::int64_t w_row_stride = 0;
  std::int64_t inputs = 0;
  const float* x = nullptr;  // [rows][inputs]
  std::int64_t x_row_stride = 0;
  float* y = nullptr;  // [rows][outputs]
  std::int64_t y_row_stride = 0;
  const float* bias = nullptr;      // [outputs] or null
  const float* residual = nullptr;  // [rows][outputs] or null; may be y exactly (equal stride)
  std::int64_t residual_row_stride = 0;
};

// y[r][n] = residual[r][n] + (sum over k of x[r][k] * W[n][k] + bias[n]) for r in [row_begin,
// row_end), n in [out_begin, out_end). Sums are f32 in a fixed order (8 lanes over k, then
// pairwise), so an element's bits depend on its row of x and of W alone. Class F (F32 weights) or H
// without output rounding. Rows beyond the range are not written, nothing beyond a row is read.
// Threads: any split of rows and outputs.
using DenseProductFn = void (*)(const DenseProductArgs& args, int row_begin, int row_end,
                                std::int64_t out_begin, std::int64_t out_end);

struct DenseProductVariant {
  const char* name;
  CpuFeatures needs;
  DenseProductFn run;
};

// Fastest first; the last needs nothing.
[[nodiscard]] std::span<const DenseProductVariant> dense_product_variants();

// y[i] = float(table[ids[i]]) for i in [begin, end): embedding rows of a dense table of
// `table_rows` rows. Class E. An id out of range writes zeros, reads nothing, and makes the result
// false. Portable code: a handful of rows per step.
[[nodiscard]] bool dense_embed(quant::Format format, const std::byte* table,
                               std::int64_t table_row_stride, std::int64_t table_rows,
                               std::int64_t width, const std::int32_t* ids, float* y,
                               std::int64_t y_row_stride, int begin, int end);

}  // namespace tern::cpu
