// Elementwise helpers for AVX2.
#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/elementwise/kernels.h"
#include "backend/cpu/kernels/elementwise/x86_avx2_math.h"

namespace tern::cpu {

void add_avx2(const AddArgs& args, int row_begin, int row_end) {
  for (int r = row_begin; r < row_end; ++r) {
    const float* a = args.a + r * args.a_row_stride;
    const float* b = args.b + r * args.b_row_stride;
    float* y = args.y + r * args.y_row_stride;
    std::int64_t i = 0;
    for (; i + 8 <= args.width; i += 8) {
      _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
    }
    for (; i < args.width; ++i) y[i] = a[i] + b[i];
  }
}

bool has_non_finite_avx2(const float* x, std::int64_t row_stride, std::int64_t width, int row_begin,
                         int row_end) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  const __m256 infinity = _mm256_castsi256_ps(_mm256_set1_epi32(0x7F800000));
  __m256 seen = _mm256_setzero_ps();
  for (int r = row_begin; r < row_end; ++r) {
    const float* row = x + r * row_stride;
    for (std::int64_t i = 0; i < width; i += 8) {
      const __m256 value = i + 8 <= width ? _mm256_loadu_ps(row + i)
                                          : _mm256_maskload_ps(row + i, first_lanes(width - i));
      seen =
          _mm256_or_ps(seen, _mm256_cmp_ps(_mm256_and_ps(value, magnitude), infinity, _CMP_NLT_UQ));
    }
  }
  return _mm256_movemask_ps(seen) != 0;
}

}  // namespace tern::cpu
