// block_product for AVX2 with f32 activations: weights of 8 outputs x 32 inputs are decoded once
// for all rows.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/block_product/x86_avx2_block.h"

namespace tern::cpu {
namespace {

constexpr int kPassRows = 32;

// weights[i] = the eight outputs' weights of input i.
void decode(quant::Format format, const std::byte* block, __m256* weights) {
  const __m256 d = load_halves(block);
  if (format == quant::Format::kQ8_0) {
    for (int u = 0; u < 16; ++u) {
      const __m256i pairs = _mm256_cvtepi8_epi16(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 + 16 * u)));
      const int i = u / 2 * 4 + u % 2;  // the pair is inputs i and i + 2
      const __m256i first = _mm256_srai_epi32(_mm256_slli_epi32(pairs, 16), 16);
      weights[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(first), d);
      weights[i + 2] = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_srai_epi32(pairs, 16)), d);
    }
    return;
  }
  const bool has_minimum = format == quant::Format::kQ4_1;
  const __m256 m = has_minimum ? load_halves(block + 16) : _mm256_setzero_ps();
  const __m256i offset = _mm256_set1_epi32(has_minimum ? 0 : 8);
  const __m256i mask = _mm256_set1_epi32(15);
  for (int u = 0; u < 4; ++u) {
    const __m256i v = load_256(block + (has_minimum ? 32 : 16) + 32 * u);
    for (int nibble = 0; nibble < 8; ++nibble) {
      const __m256i code =
          _mm256_sub_epi32(_mm256_and_si256(_mm256_srli_epi32(v, 4 * nibble), mask), offset);
      const int i = nibble % 2 * 16 + 4 * u + nibble / 2;
      const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(code), d);
      weights[i] = has_minimum ? _mm256_add_ps(scaled, m) : scaled;
    }
  }
}

// Four chains over the inputs of a block, joined pairwise.
__m256 dot_block(const __m256* weights, const float* x) {
  __m256 a = _mm256_mul_ps(weights[0], _mm256_broadcast_ss(x));
  __m256 b = _mm256_mul_ps(weights[1], _mm256_broadcast_ss(x + 1));
  __m256 c = _mm256_mul_ps(weights[2], _mm256_broadcast_ss(x + 2));
  __m256 d = _mm256_mul_ps(weights[3], _mm256_broadcast_ss(x + 3));
  for (int i = 4; i < kBlockInputs; i += 4) {
    a = _mm256_fmadd_ps(weights[i], _mm256_broadcast_ss(x + i), a);
    b = _mm256_fmadd_ps(weights[i + 1], _mm256_broadcast_ss(x + i + 1), b);
    c = _mm256_fmadd_ps(weights[i + 2], _mm256_broadcast_ss(x + i + 2), c);
    d = _mm256_fmadd_ps(weights[i + 3], _mm256_broadcast_ss(x + i + 3), d);
  }
  return _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d));
}

}  // namespace

void block_product_f32_avx2(const BlockProductArgs& args, int row_begin, int row_end,
                            std::int64_t block_begin, std::int64_t block_end) {
  const std::int64_t blocks = args.w.inputs / kBlockInputs;
  const int bytes = args.w.format == quant::Format::kQ4_0   ? 144
                    : args.w.format == quant::Format::kQ4_1 ? 160
                                                            : 272;
  for (int first = row_begin; first < row_end; first += kPassRows) {
    const int rows = row_end - first < kPassRows ? row_end - first : kPassRows;
    for (std::int64_t block = block_begin; block < block_end; ++block) {
      __m256 sums[kPassRows];
      for (int t = 0; t < rows; ++t) sums[t] = _mm256_setzero_ps();
      const std::byte* data = args.w.data + block * blocks * bytes;
      for (std::int64_t k = 0; k < blocks; ++k, data += bytes) {
        __m256 weights[kBlockInputs];
        decode(args.w.format, data, weights);
        for (int t = 0; t < rows; ++t) {
          const float* x = args.x_f32 + (first + t) * args.x_f32_row_stride + k * kBlockInputs;
          sums[t] = _mm256_add_ps(sums[t], dot_block(weights, x));
        }
      }
      for (int t = 0; t < rows; ++t) store_outputs(args, first + t, block, sums[t]);
    }
  }
}

}  // namespace tern::cpu
