// rms_norm for AVX2: squares summed in f64, four lanes at a time in four chains.
#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/elementwise/x86_avx2_math.h"
#include "backend/cpu/kernels/rms_norm/kernels.h"

namespace tern::cpu {
namespace {

constexpr float kLargestFloat = 3.402823466e38F;

// 1 / sqrt(mean + eps), at most the largest float; 0 for a zero run.
float inverse_root(double sum, int width, float eps) {
  const double mean = sum / width + static_cast<double>(eps);
  if (mean == 0) return 0;
  const __m128d value = _mm_set_sd(mean);
  const double root = _mm_cvtsd_f64(_mm_sqrt_sd(value, value));
  const double inverse = 1 / root;
  return inverse > static_cast<double>(kLargestFloat) ? kLargestFloat : static_cast<float>(inverse);
}

// Lane l of chain c holds the squares of elements 16 i + 4 c + l. A short tail is read through a
// mask.
double sum_of_squares(const float* x, int width) {
  __m256d a = _mm256_setzero_pd();
  __m256d b = a;
  __m256d c = a;
  __m256d d = a;
  int i = 0;
  for (; i + 16 <= width; i += 16) {
    const __m256d x0 = _mm256_cvtps_pd(_mm_loadu_ps(x + i));
    const __m256d x1 = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4));
    const __m256d x2 = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 8));
    const __m256d x3 = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 12));
    a = _mm256_fmadd_pd(x0, x0, a);
    b = _mm256_fmadd_pd(x1, x1, b);
    c = _mm256_fmadd_pd(x2, x2, c);
    d = _mm256_fmadd_pd(x3, x3, d);
  }
  for (; i < width; i += 8) {
    const __m256 tail = _mm256_maskload_ps(x + i, first_lanes(width - i));
    const __m256d x0 = _mm256_cvtps_pd(_mm256_castps256_ps128(tail));
    const __m256d x1 = _mm256_cvtps_pd(_mm256_extractf128_ps(tail, 1));
    a = _mm256_fmadd_pd(x0, x0, a);
    b = _mm256_fmadd_pd(x1, x1, b);
  }
  const __m256d all = _mm256_add_pd(_mm256_add_pd(a, b), _mm256_add_pd(c, d));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(all), _mm256_extractf128_pd(all, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

void normalise(const float* x, const float* weight, int width, float eps, float* y) {
  const __m256 scale = _mm256_set1_ps(inverse_root(sum_of_squares(x, width), width, eps));
  int i = 0;
  for (; i + 8 <= width; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), scale);
    _mm256_storeu_ps(y + i, _mm256_mul_ps(scaled, _mm256_loadu_ps(weight + i)));
  }
  if (i < width) {
    const __m256i mask = first_lanes(width - i);
    const __m256 scaled = _mm256_mul_ps(_mm256_maskload_ps(x + i, mask), scale);
    _mm256_maskstore_ps(y + i, mask, _mm256_mul_ps(scaled, _mm256_maskload_ps(weight + i, mask)));
  }
}

void add_rows(const float* a, const float* b, std::int64_t count, float* y) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
  }
  for (; i < count; ++i) y[i] = a[i] + b[i];
}

}  // namespace

void rms_norm_avx2(const RmsNormArgs& args, int row_begin, int row_end) {
  const std::int64_t columns = static_cast<std::int64_t>(args.heads) * args.width;
  for (int r = row_begin; r < row_end; ++r) {
    const float* x = args.x + r * args.x_row_stride;
    if (args.residual != nullptr) {
      float* sum = args.sum + r * args.sum_row_stride;
      add_rows(x, args.residual + r * args.residual_row_stride, columns, sum);
      x = sum;
    }
    float* y = args.y + r * args.y_row_stride;
    for (std::int64_t c = 0; c < columns; c += args.width) {
      normalise(x + c, args.weight, args.width, args.eps, y + c);
    }
  }
}

}  // namespace tern::cpu
