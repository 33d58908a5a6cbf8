// argmax for AVX2: each lane keeps its first largest value; the lanes are joined at the end.
#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/argmax/kernels.h"

namespace tern::cpu {
namespace {

struct Lanes {
  __m256 value;
  __m256i index;  // relative to begin; -1: none yet
  __m256 has_nan;
  __m256 has_finite;
};

ArgmaxPart join(const Lanes& lanes, std::int64_t begin) {
  alignas(32) float values[8];
  alignas(32) std::int32_t indices[8];
  _mm256_store_ps(values, lanes.value);
  _mm256_store_si256(reinterpret_cast<__m256i*>(indices), lanes.index);
  std::int32_t best = -1;
  float value = 0;
  for (int i = 0; i < 8; ++i) {
    if (indices[i] < 0) continue;
    if (best < 0 || values[i] > value || (values[i] == value && indices[i] < best)) {
      best = indices[i];
      value = values[i];
    }
  }
  ArgmaxPart part;
  if (best >= 0) {
    part.index = begin + best;
    part.value = value;
  }
  part.has_nan = _mm256_movemask_ps(lanes.has_nan) != 0;
  part.has_finite = _mm256_movemask_ps(lanes.has_finite) != 0;
  return part;
}

void take(ArgmaxPart& part, float value, std::int64_t index) {
  const float magnitude = value < 0 ? -value : value;
  if (value != value) {
    part.has_nan = true;
    return;
  }
  if (magnitude <= 3.402823466e38F) part.has_finite = true;
  if (part.index < 0 || value > part.value) {
    part.value = value;
    part.index = index;
  }
}

}  // namespace

// A range has fewer than 2^31 columns (a vocabulary).
ArgmaxPart argmax_avx2(const float* row, std::int64_t begin, std::int64_t end) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  const __m256 infinity = _mm256_castsi256_ps(_mm256_set1_epi32(0x7F800000));
  Lanes lanes{_mm256_sub_ps(_mm256_setzero_ps(), infinity), _mm256_set1_epi32(-1),
              _mm256_setzero_ps(), _mm256_setzero_ps()};
  __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  std::int64_t i = begin;
  for (; i + 8 <= end; i += 8) {
    const __m256 x = _mm256_loadu_ps(row + i);
    const __m256 larger = _mm256_cmp_ps(x, lanes.value, _CMP_GT_OQ);  // false for NaN
    lanes.value = _mm256_blendv_ps(lanes.value, x, larger);
    lanes.index = _mm256_blendv_epi8(lanes.index, index, _mm256_castps_si256(larger));
    lanes.has_nan = _mm256_or_ps(lanes.has_nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    lanes.has_finite = _mm256_or_ps(
        lanes.has_finite, _mm256_cmp_ps(_mm256_and_ps(x, magnitude), infinity, _CMP_LT_OQ));
    index = _mm256_add_epi32(index, _mm256_set1_epi32(8));
  }
  ArgmaxPart part = join(lanes, begin);
  // Nothing above -Inf in the vectors: the first -Inf, if there is one, is the largest so far.
  for (std::int64_t k = begin; part.index < 0 && k < i; ++k) take(part, row[k], k);
  for (; i < end; ++i) take(part, row[i], i);
  return part;
}

}  // namespace tern::cpu
