// simdgroup_matrix: 8x8, two elements a lane. Which lane holds which element is what public kernels
// rely on; Apple does not document it, and it was not checked on hardware.
#pragma once

#include "simd.h"

namespace metal {

template <class T, int Columns, int Rows>
struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "simdgroup_matrix is 8x8");
  static_assert(is_float_v<T>, "simdgroup_matrix is of float, half or bfloat");
  typedef vec<T, 2> storage;

  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T diagonal) {
    uint row, column;
    place(swm_g->self()->lane, row, column);
    e_[0] = row == column ? diagonal : T(0);
    e_[1] = row == column + 1 ? diagonal : T(0);
  }
  storage& thread_elements() { return e_; }
  const storage& thread_elements() const { return e_; }

  // Row and first column of the two elements of a lane.
  static void place(uint lane, uint& row, uint& column) {
    row = (lane / 4 & 4) + lane / 2 % 4;
    column = (lane / 4 & 2) * 2 + lane % 2 * 2;
  }

 private:
  storage e_;
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int Columns, int Rows>
inline simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(T v) {
  simdgroup_matrix<T, Columns, Rows> m;
  m.thread_elements()[0] = v;
  m.thread_elements()[1] = v;
  return m;
}

namespace detail {

// Calls f(element of the lane, its index in memory) for both elements.
template <class F>
inline void for_own_elements(ulong row_elements, ulong2 origin, bool is_transposed, F f) {
  uint row, column;
  simdgroup_float8x8::place(swm_g->self()->lane, row, column);
  for (uint k = 0; k < 2; k++) {
    const ulong r = is_transposed ? column + k : row, c = is_transposed ? row : column + k;
    f(int(k), (r + origin[1]) * row_elements + c + origin[0]);
  }
}

}  // namespace detail

template <class T, class P>
inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const P* from, ulong row_elements = 8,
                           ulong2 origin = ulong2(0, 0), bool is_transposed = false) {
  static_assert(is_same_v<typename remove_cvref<P>::type, T>, "simdgroup_load between types");
  detail::for_own_elements(row_elements, origin, is_transposed,
                           [&](int k, ulong at) { m.thread_elements()[k] = from[at]; });
}
template <class T, class P>
inline void simdgroup_store(const simdgroup_matrix<T, 8, 8>& m, P* to, ulong row_elements = 8,
                            ulong2 origin = ulong2(0, 0), bool is_transposed = false) {
  static_assert(is_same_v<typename remove_cvref<P>::type, T>, "simdgroup_store between types");
  detail::for_own_elements(row_elements, origin, is_transposed,
                           [&](int k, ulong at) { to[at] = m.thread_elements()[k]; });
}

namespace detail {

struct Fragments {
  float a[2], b[2];
};

// The product of the matrices that the lanes brought, in k order in float; once for all lanes.
SWM_UNSEEN inline const float* product(swm_exchange* e, int line) {
  float* const r = reinterpret_cast<float*>(e->result);
  if (e->is_done) return r;
  if (e->mask != ~0u)
    swm_g->fail("SIMD-group matrix operation with inactive lanes", int(e->mask), line);
  float a[8][8], b[8][8];
  for (uint lane = 0; lane < 32; lane++) {
    const Fragments f = brought_by<Fragments>(e, lane);
    uint row, column;
    simdgroup_float8x8::place(lane, row, column);
    for (uint k = 0; k < 2; k++) {
      a[row][column + k] = f.a[k];
      b[row][column + k] = f.b[k];
    }
  }
  for (int i = 0; i < 8; i++) {
    float sum[8] = {};
    for (int k = 0; k < 8; k++)
      for (int j = 0; j < 8; j++) sum[j] += a[i][k] * b[k][j];
    for (int j = 0; j < 8; j++) r[8 * i + j] = sum[j];
  }
  e->is_done = 1;
  return r;
}

}  // namespace detail

// d = a * b + c; d may be c.
template <class D, class A, class B, class C>
SWM_UNSEEN inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d,
                                                     const simdgroup_matrix<A, 8, 8>& a,
                                                     const simdgroup_matrix<B, 8, 8>& b,
                                                     const simdgroup_matrix<C, 8, 8>& c,
                                                     int line = __builtin_LINE()) {
  const auto x = a.thread_elements();
  const auto y = b.thread_elements();
  const auto z = c.thread_elements();
  const detail::Fragments f = {{float(x[0]), float(x[1])}, {float(y[0]), float(y[1])}};
  const float* p = detail::product(detail::exchange(detail::kMultiply, line, f), line);
  uint row, column;
  simdgroup_float8x8::place(swm_g->self()->lane, row, column);
  for (uint k = 0; k < 2; k++) d.thread_elements()[k] = D(float(z[k]) + p[8 * row + column + k]);
}
template <class D, class A, class B>
inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                               const simdgroup_matrix<B, 8, 8>& b, int line = __builtin_LINE()) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(0)), line);
}

}  // namespace metal
