// swiglu for AVX2: eight values per step, the tail through a mask so that every element takes the
// same path.
#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/elementwise/x86_avx2_math.h"
#include "backend/cpu/kernels/swiglu/kernels.h"

namespace tern::cpu {

void swiglu_avx2(const SwigluArgs& args, int row_begin, int row_end, int column_begin,
                 int column_end) {
  for (int r = row_begin; r < row_end; ++r) {
    const float* gate = args.gate + r * args.gate_row_stride;
    const float* up = args.up + r * args.up_row_stride;
    float* y = args.y + r * args.y_row_stride;
    int c = column_begin;
    for (; c + 8 <= column_end; c += 8) {
      const __m256 g = silu(_mm256_loadu_ps(gate + c));
      _mm256_storeu_ps(y + c, _mm256_mul_ps(g, _mm256_loadu_ps(up + c)));
    }
    if (c < column_end) {
      const __m256i mask = first_lanes(column_end - c);
      const __m256 g = silu(_mm256_maskload_ps(gate + c, mask));
      _mm256_maskstore_ps(y + c, mask, _mm256_mul_ps(g, _mm256_maskload_ps(up + c, mask)));
    }
  }
}

}  // namespace tern::cpu
