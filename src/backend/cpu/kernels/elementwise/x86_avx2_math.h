// Small AVX2 functions that several kernels share: exponentials, pairwise sums, masks. Everything
// has internal linkage, so that no copy of it can reach code for other processors.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tern::cpu {
namespace {

// All-ones in the first n of 8 lanes (n <= 0: none, n >= 8: all).
inline __m256i first_lanes(std::int64_t n) {
  const int count = n > 8 ? 8 : n < 0 ? 0 : static_cast<int>(n);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7)).
inline float sum_pairwise(__m256 x) {
  const __m256 pairs = _mm256_hadd_ps(x, x);
  const __m256 quads = _mm256_hadd_ps(pairs, pairs);
  return _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1)));
}

// The same sums of four vectors at once.
inline __m128 sum4_pairwise(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 quads = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1));
}

// x = n ln 2 + r with |r| <= 0.3466 (ln 2 in two parts); returns e^r by its series to r^7 / 5040,
// whose rest is below 2^-27 of it, and n. NaN stays NaN.
inline __m256 exp_reduced(__m256 x, __m256i* n) {
  const __m256 rounded = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504F)),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(rounded, _mm256_set1_ps(0.693359375F), x);
  r = _mm256_fnmadd_ps(rounded, _mm256_set1_ps(-2.12194440e-4F), r);
  __m256 p = _mm256_set1_ps(1.0F / 5040);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 720));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 120));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 24));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 6));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
  *n = _mm256_cvtps_epi32(rounded);
  return p;
}

// 2^n for n in -126..127.
inline __m256 power_of_two(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

// e^x for x <= 0 within 2 ulp; 0 below -87.3 (2^-126), so that no result is subnormal. NaN stays
// NaN, -Inf gives 0.
inline __m256 exp_nonpositive(__m256 x) {
  const __m256 smallest = _mm256_set1_ps(-87.3F);
  const __m256 vanishes = _mm256_cmp_ps(x, smallest, _CMP_LT_OQ);
  __m256i n;
  const __m256 p = exp_reduced(_mm256_max_ps(smallest, x), &n);  // max returns x where x is NaN
  return _mm256_andnot_ps(vanishes, _mm256_mul_ps(p, power_of_two(n)));
}

// g / (1 + e^-g) within 4 ulp, by e^-|g|, which never overflows: for g < 0 it is g e^g / (1 + e^g).
// Below -120 the result is 0 (|g e^g| < 2^-150); e^g is applied in two steps of at least 2^-87, so
// that small results round only once.
inline __m256 silu(__m256 g) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  const __m256 lowest = _mm256_set1_ps(-120.0F);
  const __m256 vanishes = _mm256_cmp_ps(g, lowest, _CMP_LT_OQ);
  __m256i n;
  const __m256 p = exp_reduced(_mm256_max_ps(lowest, _mm256_or_ps(g, sign)), &n);
  const __m256i half = _mm256_srai_epi32(n, 1);
  const __m256 first = power_of_two(half);
  const __m256 second = power_of_two(_mm256_sub_epi32(n, half));
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 e = _mm256_mul_ps(_mm256_mul_ps(p, first), second);
  const __m256 quotient = _mm256_div_ps(g, _mm256_add_ps(one, e));
  const __m256 below = _mm256_mul_ps(_mm256_mul_ps(_mm256_mul_ps(quotient, p), first), second);
  const __m256 is_negative = _mm256_cmp_ps(g, _mm256_setzero_ps(), _CMP_LT_OQ);
  return _mm256_andnot_ps(vanishes, _mm256_blendv_ps(quotient, below, is_negative));
}

}  // namespace
}  // namespace tern::cpu
