// What the AVX2 kernels of block_product share: scales, epilogue, the store of eight outputs.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/block_product/kernels.h"

namespace tern::cpu {
namespace {

inline __m256 load_halves(const std::byte* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline __m256i load_256(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// Keeps a sum in a register. Without it gcc regroups integer sums of an unrolled loop into a tree
// and spills the terms (37 stores to the stack per block instead of none).
inline void keep(__m256i& sum) { __asm__("" : "+x"(sum)); }

// y[row][8 block ..] = residual + (sum + bias); outputs beyond the matrix are neither read nor
// written.
inline void store_outputs(const BlockProductArgs& args, int row, std::int64_t block, __m256 sum) {
  const std::int64_t n = block * kBlockRows;
  const std::int64_t left = args.w.outputs - n;
  float* y = args.y + row * args.y_row_stride + n;
  const float* residual =
      args.residual == nullptr ? nullptr : args.residual + row * args.residual_row_stride + n;
  if (left >= kBlockRows) {
    if (args.bias != nullptr) sum = _mm256_add_ps(sum, _mm256_loadu_ps(args.bias + n));
    if (residual != nullptr) sum = _mm256_add_ps(_mm256_loadu_ps(residual), sum);
    _mm256_storeu_ps(y, sum);
    return;
  }
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(left)),
                                          _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  if (args.bias != nullptr) sum = _mm256_add_ps(sum, _mm256_maskload_ps(args.bias + n, mask));
  if (residual != nullptr) sum = _mm256_add_ps(_mm256_maskload_ps(residual, mask), sum);
  _mm256_maskstore_ps(y, mask, sum);
}

// One row of activations.
struct ActivationRow {
  const std::byte* q;
  const std::byte* hi;
  const std::byte* lo;
  const float* scale;
  const float* scaled_sum;
  const std::int32_t* sum;
};
inline ActivationRow activation_row(const BlockActivations& x, int row) {
  const std::int64_t blocks = x.inputs / kBlockInputs;
  const std::int64_t row_bytes = (4 * x.inputs + 12 * blocks + 63) / 64 * 64;
  const std::byte* base = x.data + row * row_bytes;
  const auto* scale = reinterpret_cast<const float*>(base + 4 * x.inputs);
  return {base,  base + 2 * x.inputs, base + 3 * x.inputs,
          scale, scale + blocks,      reinterpret_cast<const std::int32_t*>(scale + 2 * blocks)};
}

}  // namespace
}  // namespace tern::cpu
