// Register tiles of attention for AVX2: scores of 1 to 3 queries against 4 keys, and 1 to 3 queries
// times values.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/elementwise/x86_avx2_math.h"

namespace tern::cpu {
namespace {

// s[q][0..3] = scale * dot(q, k row): 8-lane sums over d, then pairwise. Rows of k are `width`
// floats apart.
inline void scores_3x4(const float* const* q, const float* k, int width, __m128 scale,
                       float* const* s) {
  __m256 a0 = _mm256_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
  __m256 b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  __m256 c0 = a0, c1 = a0, c2 = a0, c3 = a0;
  const float* q0 = q[0];
  const float* q1 = q[1];
  const float* q2 = q[2];
  const float* k1 = k + width;
  const float* k2 = k1 + width;
  const float* k3 = k2 + width;
  for (int d = 0; d < width; d += 8) {
    const __m256 x = _mm256_loadu_ps(q0 + d);
    const __m256 y = _mm256_loadu_ps(q1 + d);
    const __m256 z = _mm256_loadu_ps(q2 + d);
    __m256 key = _mm256_loadu_ps(k + d);
    a0 = _mm256_fmadd_ps(x, key, a0);
    b0 = _mm256_fmadd_ps(y, key, b0);
    c0 = _mm256_fmadd_ps(z, key, c0);
    key = _mm256_loadu_ps(k1 + d);
    a1 = _mm256_fmadd_ps(x, key, a1);
    b1 = _mm256_fmadd_ps(y, key, b1);
    c1 = _mm256_fmadd_ps(z, key, c1);
    key = _mm256_loadu_ps(k2 + d);
    a2 = _mm256_fmadd_ps(x, key, a2);
    b2 = _mm256_fmadd_ps(y, key, b2);
    c2 = _mm256_fmadd_ps(z, key, c2);
    key = _mm256_loadu_ps(k3 + d);
    a3 = _mm256_fmadd_ps(x, key, a3);
    b3 = _mm256_fmadd_ps(y, key, b3);
    c3 = _mm256_fmadd_ps(z, key, c3);
  }
  _mm_storeu_ps(s[0], _mm_mul_ps(sum4_pairwise(a0, a1, a2, a3), scale));
  _mm_storeu_ps(s[1], _mm_mul_ps(sum4_pairwise(b0, b1, b2, b3), scale));
  _mm_storeu_ps(s[2], _mm_mul_ps(sum4_pairwise(c0, c1, c2, c3), scale));
}

inline void scores_1x4(const float* q, const float* k, int width, __m128 scale, float* s) {
  __m256 a0 = _mm256_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
  const float* k1 = k + width;
  const float* k2 = k1 + width;
  const float* k3 = k2 + width;
  for (int d = 0; d < width; d += 8) {
    const __m256 x = _mm256_loadu_ps(q + d);
    a0 = _mm256_fmadd_ps(x, _mm256_loadu_ps(k + d), a0);
    a1 = _mm256_fmadd_ps(x, _mm256_loadu_ps(k1 + d), a1);
    a2 = _mm256_fmadd_ps(x, _mm256_loadu_ps(k2 + d), a2);
    a3 = _mm256_fmadd_ps(x, _mm256_loadu_ps(k3 + d), a3);
  }
  _mm_storeu_ps(s, _mm_mul_ps(sum4_pairwise(a0, a1, a2, a3), scale));
}

// o[q][d .. d+31] += sum over `keys` keys, ascending, of p[q][key] * v[key][d ..]. Rows of v are
// `width` apart.
inline void weigh_3x32(const float* const* p, const float* v, int width, int keys,
                       float* const* o) {
  __m256 a0 = _mm256_loadu_ps(o[0]), a1 = _mm256_loadu_ps(o[0] + 8);
  __m256 a2 = _mm256_loadu_ps(o[0] + 16), a3 = _mm256_loadu_ps(o[0] + 24);
  __m256 b0 = _mm256_loadu_ps(o[1]), b1 = _mm256_loadu_ps(o[1] + 8);
  __m256 b2 = _mm256_loadu_ps(o[1] + 16), b3 = _mm256_loadu_ps(o[1] + 24);
  __m256 c0 = _mm256_loadu_ps(o[2]), c1 = _mm256_loadu_ps(o[2] + 8);
  __m256 c2 = _mm256_loadu_ps(o[2] + 16), c3 = _mm256_loadu_ps(o[2] + 24);
  const float* p0 = p[0];
  const float* p1 = p[1];
  const float* p2 = p[2];
  for (int key = 0; key < keys; ++key, v += width) {
    const __m256 x = _mm256_broadcast_ss(p0 + key);
    const __m256 y = _mm256_broadcast_ss(p1 + key);
    const __m256 z = _mm256_broadcast_ss(p2 + key);
    __m256 value = _mm256_loadu_ps(v);
    a0 = _mm256_fmadd_ps(x, value, a0);
    b0 = _mm256_fmadd_ps(y, value, b0);
    c0 = _mm256_fmadd_ps(z, value, c0);
    value = _mm256_loadu_ps(v + 8);
    a1 = _mm256_fmadd_ps(x, value, a1);
    b1 = _mm256_fmadd_ps(y, value, b1);
    c1 = _mm256_fmadd_ps(z, value, c1);
    value = _mm256_loadu_ps(v + 16);
    a2 = _mm256_fmadd_ps(x, value, a2);
    b2 = _mm256_fmadd_ps(y, value, b2);
    c2 = _mm256_fmadd_ps(z, value, c2);
    value = _mm256_loadu_ps(v + 24);
    a3 = _mm256_fmadd_ps(x, value, a3);
    b3 = _mm256_fmadd_ps(y, value, b3);
    c3 = _mm256_fmadd_ps(z, value, c3);
  }
  _mm256_storeu_ps(o[0], a0);
  _mm256_storeu_ps(o[0] + 8, a1);
  _mm256_storeu_ps(o[0] + 16, a2);
  _mm256_storeu_ps(o[0] + 24, a3);
  _mm256_storeu_ps(o[1], b0);
  _mm256_storeu_ps(o[1] + 8, b1);
  _mm256_storeu_ps(o[1] + 16, b2);
  _mm256_storeu_ps(o[1] + 24, b3);
  _mm256_storeu_ps(o[2], c0);
  _mm256_storeu_ps(o[2] + 8, c1);
  _mm256_storeu_ps(o[2] + 16, c2);
  _mm256_storeu_ps(o[2] + 24, c3);
}

inline void weigh_1x32(const float* p, const float* v, int width, int keys, float* o) {
  __m256 a0 = _mm256_loadu_ps(o), a1 = _mm256_loadu_ps(o + 8);
  __m256 a2 = _mm256_loadu_ps(o + 16), a3 = _mm256_loadu_ps(o + 24);
  for (int key = 0; key < keys; ++key, v += width) {
    const __m256 x = _mm256_broadcast_ss(p + key);
    a0 = _mm256_fmadd_ps(x, _mm256_loadu_ps(v), a0);
    a1 = _mm256_fmadd_ps(x, _mm256_loadu_ps(v + 8), a1);
    a2 = _mm256_fmadd_ps(x, _mm256_loadu_ps(v + 16), a2);
    a3 = _mm256_fmadd_ps(x, _mm256_loadu_ps(v + 24), a3);
  }
  _mm256_storeu_ps(o, a0);
  _mm256_storeu_ps(o + 8, a1);
  _mm256_storeu_ps(o + 16, a2);
  _mm256_storeu_ps(o + 24, a3);
}

inline void weigh_1x8(const float* p, const float* v, int width, int keys, float* o) {
  __m256 a = _mm256_loadu_ps(o);
  for (int key = 0; key < keys; ++key, v += width) {
    a = _mm256_fmadd_ps(_mm256_broadcast_ss(p + key), _mm256_loadu_ps(v), a);
  }
  _mm256_storeu_ps(o, a);
}

}  // namespace
}  // namespace tern::cpu
