// Packed vectors, which are aligned as their elements, and matrices of columns.
#pragma once

#include "integer.h"
#include "math.h"

namespace metal {

template <class T, int N>
struct packed_vec {
  T d[N];
  packed_vec() = default;
  packed_vec(vec<T, N> v) {
    for (int i = 0; i < N; i++) d[i] = v[i];
  }
  template <class... A, enable_if_t<sizeof...(A) == N, int> = 0>
  packed_vec(A... a) : d{T(a)...} {}
  operator vec<T, N>() const {
    vec<T, N> v;
    for (int i = 0; i < N; i++) v[i] = d[i];
    return v;
  }
  T& operator[](unsigned long i) { return d[i]; }
  const T& operator[](unsigned long i) const { return d[i]; }
};

// C columns of R rows.
template <class T, int C, int R>
struct matrix {
  typedef vec<T, R> column;
  column c[C];
  matrix() = default;
  explicit matrix(T diagonal) {
    for (int i = 0; i < C; i++) {
      c[i] = column(T(0));
      if (i < R) c[i][i] = diagonal;
    }
  }
  template <class U>
  explicit matrix(const matrix<U, C, R>& o) {
    for (int i = 0; i < C; i++) c[i] = column(o.c[i]);
  }
  template <class... A, enable_if_t<sizeof...(A) + 2 == C, int> = 0>
  matrix(column a, column b, A... rest) : c{a, b, rest...} {}
  column& operator[](unsigned long i) { return c[i]; }
  const column& operator[](unsigned long i) const { return c[i]; }

  friend matrix operator+(matrix a, const matrix& b) {
    for (int i = 0; i < C; i++) a.c[i] += b.c[i];
    return a;
  }
  friend matrix operator-(matrix a, const matrix& b) {
    for (int i = 0; i < C; i++) a.c[i] -= b.c[i];
    return a;
  }
  friend matrix operator*(matrix a, T s) {
    for (int i = 0; i < C; i++) a.c[i] *= s;
    return a;
  }
  friend matrix operator*(T s, const matrix& a) { return a * s; }
  friend column operator*(const matrix& a, vec<T, C> v) {
    column r(T(0));
    for (int i = 0; i < C; i++) r += a.c[i] * v[i];
    return r;
  }
  friend vec<T, C> operator*(column v, const matrix& a) {
    vec<T, C> r;
    for (int i = 0; i < C; i++) r[i] = dot(v, a.c[i]);
    return r;
  }
};

template <class T, int C, int R, int K>
inline matrix<T, K, R> operator*(const matrix<T, C, R>& a, const matrix<T, K, C>& b) {
  matrix<T, K, R> r;
  for (int i = 0; i < K; i++) r.c[i] = a * b.c[i];
  return r;
}
template <class T, int C, int R>
inline matrix<T, R, C> transpose(const matrix<T, C, R>& a) {
  matrix<T, R, C> r;
  for (int i = 0; i < R; i++)
    for (int k = 0; k < C; k++) r.c[i][k] = a.c[k][i];
  return r;
}

}  // namespace metal

#define SWM_PACKED(T)                            \
  typedef metal::packed_vec<T, 2> packed_##T##2; \
  typedef metal::packed_vec<T, 3> packed_##T##3; \
  typedef metal::packed_vec<T, 4> packed_##T##4;
SWM_PACKED(float)
SWM_PACKED(half)
SWM_PACKED(int)
SWM_PACKED(uint)
SWM_PACKED(short)
SWM_PACKED(ushort)
SWM_PACKED(char)
SWM_PACKED(uchar)
#undef SWM_PACKED
#define SWM_MATRICES(T)                  \
  typedef metal::matrix<T, 2, 2> T##2x2; \
  typedef metal::matrix<T, 2, 3> T##2x3; \
  typedef metal::matrix<T, 2, 4> T##2x4; \
  typedef metal::matrix<T, 3, 2> T##3x2; \
  typedef metal::matrix<T, 3, 3> T##3x3; \
  typedef metal::matrix<T, 3, 4> T##3x4; \
  typedef metal::matrix<T, 4, 2> T##4x2; \
  typedef metal::matrix<T, 4, 3> T##4x3; \
  typedef metal::matrix<T, 4, 4> T##4x4;
SWM_MATRICES(float)
SWM_MATRICES(half)
#undef SWM_MATRICES
