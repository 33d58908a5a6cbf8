// rope for AVX2: eight pairs (halves) or four pairs (adjacent) per step; products and sums are
// rounded as in plain code.
#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/rope/kernels.h"

namespace tern::cpu {
namespace {

void rotate_halves(const float* x, float* y, int pairs, const float* cos, const float* sin) {
  int j = 0;
  for (; j + 8 <= pairs; j += 8) {
    const __m256 a = _mm256_loadu_ps(x + j);
    const __m256 b = _mm256_loadu_ps(x + pairs + j);
    const __m256 c = _mm256_loadu_ps(cos + j);
    const __m256 s = _mm256_loadu_ps(sin + j);
    _mm256_storeu_ps(y + j, _mm256_sub_ps(_mm256_mul_ps(a, c), _mm256_mul_ps(b, s)));
    _mm256_storeu_ps(y + pairs + j, _mm256_add_ps(_mm256_mul_ps(b, c), _mm256_mul_ps(a, s)));
  }
  for (; j < pairs; ++j) {
    const float a = x[j];
    const float b = x[pairs + j];
    y[j] = a * cos[j] - b * sin[j];
    y[pairs + j] = b * cos[j] + a * sin[j];
  }
}

void rotate_adjacent(const float* x, float* y, int pairs, const float* cos, const float* sin) {
  const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  int j = 0;
  for (; j + 4 <= pairs; j += 4) {
    const __m256 v = _mm256_loadu_ps(x + 2 * j);
    const __m256 swapped = _mm256_permute_ps(v, 0xB1);
    const __m256 c = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(cos + j)), twice);
    const __m256 s = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(sin + j)), twice);
    // even lanes subtract, odd lanes add
    _mm256_storeu_ps(y + 2 * j, _mm256_addsub_ps(_mm256_mul_ps(v, c), _mm256_mul_ps(swapped, s)));
  }
  for (; j < pairs; ++j) {
    const float a = x[2 * j];
    const float b = x[2 * j + 1];
    y[2 * j] = a * cos[j] - b * sin[j];
    y[2 * j + 1] = b * cos[j] + a * sin[j];
  }
}

}  // namespace

void rope_avx2(const RopeArgs& args, int row_begin, int row_end) {
  const int pairs = args.rope_dims / 2;
  for (int r = row_begin; r < row_end; ++r) {
    const float* cos = args.cos + static_cast<std::int64_t>(r) * pairs;
    const float* sin = args.sin + static_cast<std::int64_t>(r) * pairs;
    for (std::int64_t h = 0; h < args.heads; ++h) {
      const float* x = args.x + r * args.x_row_stride + h * args.head_dim;
      float* y = args.y + r * args.y_row_stride + h * args.head_dim;
      if (args.mode == RopeMode::kHalves) {
        rotate_halves(x, y, pairs, cos, sin);
      } else {
        rotate_adjacent(x, y, pairs, cos, sin);
      }
      if (x != y) {
        for (int i = args.rope_dims; i < args.head_dim; ++i) y[i] = x[i];
      }
    }
  }
}

}  // namespace tern::cpu
