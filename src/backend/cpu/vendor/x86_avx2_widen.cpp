// Eight 16-bit floats at a time to f32.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/vendor/widen.h"

namespace tern::cpu {

void widen_half_avx2(const std::uint16_t* from, float* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(bits));
  }
  for (; i < count; ++i) to[i] = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(from[i])));
}

void widen_bf16_avx2(const std::uint16_t* from, float* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16);
    _mm256_storeu_ps(to + i, _mm256_castsi256_ps(wide));
  }
  for (; i < count; ++i) {
    to[i] = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(from[i] << 16)));
  }
}

}  // namespace tern::cpu
