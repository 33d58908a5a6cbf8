// Activations to 12-bit integers for AVX2: one group of up to 128 inputs at a time.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/block_product/kernels.h"

namespace tern::cpu {
namespace {

constexpr std::int64_t kGroup = 128;
constexpr float kLargest = 2047;

// The largest magnitude as bits: order of magnitudes is order of bits, with Inf and NaN above all.
std::uint32_t largest_bits(const float* x, std::int64_t count) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i most = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < count; i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    most = _mm256_max_epi32(most, _mm256_and_si256(bits, magnitude));
  }
  __m128i half = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
}

float float_of(std::uint32_t bits) {
  return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(bits))));
}

// Eight q as int32.
__m256i round8(const float* x, __m256 r) {
  const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x), r);
  const __m256i q = _mm256_cvtps_epi32(scaled);  // to nearest, ties to even
  return _mm256_max_epi32(_mm256_min_epi32(q, _mm256_set1_epi32(2047)), _mm256_set1_epi32(-2047));
}

// Four vectors of int32 in order -> two of int16 in order.
__m256i pack16(__m256i a, __m256i b) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
}

std::int32_t sum8(__m256i x) {
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xB1));
  return _mm_cvtsi128_si32(half);
}

void store256(std::byte* to, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
}

// 32 inputs: q in the order 0 2 1 3, hi and lo in order; returns the sum of q.
std::int32_t quantize_block(const float* x, __m256 r, std::byte* q, std::byte* hi, std::byte* lo) {
  const __m256i q0 = round8(x, r);
  const __m256i q1 = round8(x + 8, r);
  const __m256i q2 = round8(x + 16, r);
  const __m256i q3 = round8(x + 24, r);
  const __m256i low = pack16(q0, q1);
  const __m256i high = pack16(q2, q3);
  const __m256i swap = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 0, 1,
                                        4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
  store256(q, _mm256_shuffle_epi8(low, swap));
  store256(q + 32, _mm256_shuffle_epi8(high, swap));
  const __m256i nibble = _mm256_set1_epi16(15);
  store256(hi,
           _mm256_permute4x64_epi64(
               _mm256_packs_epi16(_mm256_srai_epi16(low, 4), _mm256_srai_epi16(high, 4)), 0xD8));
  store256(lo, _mm256_permute4x64_epi64(_mm256_packus_epi16(_mm256_and_si256(low, nibble),
                                                            _mm256_and_si256(high, nibble)),
                                        0xD8));
  return sum8(_mm256_add_epi32(_mm256_add_epi32(q0, q1), _mm256_add_epi32(q2, q3)));
}

void quantize_row(const float* x, std::int64_t inputs, std::byte* row) {
  const BlockActivationOffsets at = block_activation_offsets(inputs);
  auto* scales = reinterpret_cast<float*>(row + at.scale);
  auto* scaled_sums = reinterpret_cast<float*>(row + at.scaled_sum);
  auto* sums = reinterpret_cast<std::int32_t*>(row + at.sum);
  for (std::int64_t first = 0; first < inputs; first += kGroup) {
    const std::int64_t end = inputs - first < kGroup ? inputs : first + kGroup;
    const std::uint32_t bits = largest_bits(x + first, end - first);
    const bool is_finite = bits < 0x7F800000U;
    const bool is_zero = bits < 0x0D800000U;  // below 2^-100
    const float largest = float_of(bits);
    const float a = !is_finite ? float_of(0x7FC00000U) : is_zero ? 0.0F : largest / kLargest;
    const __m256 r = _mm256_set1_ps(kLargest / largest);
    for (std::int64_t i = first; i < end; i += kBlockInputs) {
      const std::int64_t block = i / kBlockInputs;
      std::int32_t sum = 0;
      if (is_finite && !is_zero) {
        sum = quantize_block(x + i, r, row + 2 * i, row + at.hi + i, row + at.lo + i);
      } else {
        store256(row + 2 * i, _mm256_setzero_si256());
        store256(row + 2 * i + 32, _mm256_setzero_si256());
        store256(row + at.hi + i, _mm256_setzero_si256());
        store256(row + at.lo + i, _mm256_setzero_si256());
      }
      scales[block] = a;
      scaled_sums[block] = a * static_cast<float>(sum);
      sums[block] = sum;
    }
  }
}

}  // namespace

void block_quantize_avx2(const float* x, std::int64_t x_row_stride, const BlockActivations& out,
                         int row_begin, int row_end) {
  const std::int64_t row_bytes = block_activation_offsets(out.inputs).row_bytes;
  for (int r = row_begin; r < row_end; ++r) {
    quantize_row(x + r * x_row_stride, out.inputs, out.data + r * row_bytes);
  }
}

}  // namespace tern::cpu
