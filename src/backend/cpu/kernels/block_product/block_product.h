// block_product: y = x W^T for weights in blocks of 32 (Q4_0, Q4_1, Q8_0), by 12-bit or f32
// activations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu_features.h"
#include "quant/format.h"

namespace tern::cpu {

inline constexpr int kBlockInputs = 32;  // inputs of a weight block
inline constexpr int kBlockRows = 8;     // outputs that lie interleaved

// A matrix in its resident layout: one copy, read by every form. For each 8 outputs and each 32
// inputs, ascending: 8 f16 scales, (Q4_1) 8 f16 minima, then the codes:
//   Q4_0, Q4_1: 4 vectors of 32 bytes. Bytes 4r .. 4r+3 of vector u are file bytes 4u .. 4u+3 of
//               row r: low nibbles are inputs 4u .. 4u+3, high nibbles inputs 16+4u .. 16+4u+3.
//   Q8_0:       16 vectors of 16 bytes. Bytes 2r, 2r+1 of vector 2u are inputs 4u, 4u+2 of row r,
//               those of vector 2u+1 inputs 4u+1, 4u+3.
// 144, 160 or 272 bytes: as many bits per weight as the file. Outputs are padded to 8 with zeros.
struct BlockMatrix {
  quant::Format format = quant::Format::kQ4_1;
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;          // a multiple of 32
  const std::byte* data = nullptr;  // block_matrix_bytes, 64-byte aligned
};

[[nodiscard]] std::uint64_t block_matrix_bytes(quant::Format format, std::int64_t outputs,
                                               std::int64_t inputs);

// Writes `count` consecutive rows of a file tensor (file_rows: bytes_for(format, inputs) each, any
// alignment) as outputs first_output .. first_output + count - 1 of the matrix at `data`. Rows are
// independent: any split over threads. The call that writes the last output of the matrix also
// zeroes the padding.
void block_pack_rows(quant::Format format, std::int64_t outputs, std::int64_t inputs,
                     const std::byte* file_rows, std::int64_t first_output, std::int64_t count,
                     std::byte* data);

// y[i] = decoded row ids[i] of the matrix, for i in [begin, end). Class E against the decoder of
// formats.md 4.1. An id out of range writes zeros, reads nothing, and makes the result false.
[[nodiscard]] bool block_embed(const BlockMatrix& w, const std::int32_t* ids, float* y,
                               std::int64_t y_row_stride, int begin, int end);

// Rows of quantised activations (kernels.md 1.2: 12 bits, groups of 128 inputs, the last may be
// shorter). A row takes block_activation_row_bytes(inputs) bytes:
//   int16 q[inputs], each four inputs in the order 0 2 1 3 (so that a 32-bit word of nibbles,
//   masked to 16-bit fields, meets its activations); int8 hi[inputs], uint8 lo[inputs], in order,
//   with q = 16 hi + lo; then per 32 inputs float a (of its group of 128), float a * sum, int32 sum
//   of q.
// `data` is 64-byte aligned.
struct BlockActivations {
  std::int64_t inputs = 0;  // a multiple of 32
  std::byte* data = nullptr;
};
[[nodiscard]] constexpr std::uint64_t block_activation_row_bytes(std::int64_t inputs) {
  const auto n = static_cast<std::uint64_t>(inputs);
  return (n * 4 + n / 32 * 12 + 63) / 64 * 64;
}

// Quantises rows [row_begin, row_end) of x into the same rows of `out`. Class E. Threads: any split
// of rows.
using BlockQuantizeFn = void (*)(const float* x, std::int64_t x_row_stride,
                                 const BlockActivations& out, int row_begin, int row_end);

struct BlockProductArgs {
  BlockMatrix w;
  BlockActivations x;            // the i12 form reads this
  const float* x_f32 = nullptr;  // the f32 form reads this: [rows][inputs]
  std::int64_t x_f32_row_stride = 0;
  float* y = nullptr;  // [rows][outputs]
  std::int64_t y_row_stride = 0;
  const float* bias = nullptr;      // [outputs] or null
  const float* residual = nullptr;  // [rows][outputs] or null; may be y exactly (equal stride)
  std::int64_t residual_row_stride = 0;
};

// y[r][n] = residual[r][n] + (sum + bias[n]) for r in [row_begin, row_end) and the outputs n of the
// blocks [block_begin, block_end), block b being outputs 8b .. 8b+7 (ceil(outputs / 8) blocks;
// padding is never written).
//
// i12 form: with I the exact integer dot product of codes and q over 32 inputs and blocks k
// ascending,
//   Q4_0, Q8_0: acc = fma(float(I), d * a, acc), I taken of (code - 8) or of the signed byte; sum =
//   acc Q4_1:       acc as before with the unsigned code; min = fma(m, a * sum(q), min); sum = acc
//   + min
// Products d * a and a * sum are rounded once to f32. Every variant and every number of rows gives
// these bits. f32 form: sum of x times the decoded f32 weight, f32, in a fixed order that does not
// depend on the rows. Class F. Threads: any split of rows and blocks. A row that holds NaN or Inf
// gives NaN.
using BlockProductFn = void (*)(const BlockProductArgs& args, int row_begin, int row_end,
                                std::int64_t block_begin, std::int64_t block_end);

struct BlockProductVariant {
  const char* name;
  CpuFeatures needs;
  BlockQuantizeFn quantize;
  BlockProductFn run;      // i12
  BlockProductFn run_f32;  // --activations f32
};

// Fastest first; the last needs nothing. Every variant reads the same layouts.
[[nodiscard]] std::span<const BlockProductVariant> block_product_variants();

}  // namespace tern::cpu
