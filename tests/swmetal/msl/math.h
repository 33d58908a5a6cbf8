// Floating-point builtins: common, relational, math and geometric functions of MSL. Computed in
// float by the C library, so the last bits differ from a GPU's.
#pragma once

#include "map.h"

namespace metal {

#define SWM_MATH1(name, expression)                                                \
  template <class T>                                                               \
  inline detail::float_t<T> name(T v) {                                            \
    return detail::map<detail::float_t<T>>([](float x) { return expression; }, v); \
  }
SWM_MATH1(acos, __builtin_acosf(x))
SWM_MATH1(acosh, __builtin_acoshf(x))
SWM_MATH1(asin, __builtin_asinf(x))
SWM_MATH1(asinh, __builtin_asinhf(x))
SWM_MATH1(atan, __builtin_atanf(x))
SWM_MATH1(atanh, __builtin_atanhf(x))
SWM_MATH1(ceil, __builtin_ceilf(x))
SWM_MATH1(cos, __builtin_cosf(x))
SWM_MATH1(cosh, __builtin_coshf(x))
SWM_MATH1(cospi, float(__builtin_cos(3.14159265358979323846 * (double)x)))
SWM_MATH1(exp, __builtin_expf(x))
SWM_MATH1(exp2, __builtin_exp2f(x))
SWM_MATH1(exp10, float(__builtin_pow(10.0, (double)x)))
SWM_MATH1(fabs, __builtin_fabsf(x))
SWM_MATH1(floor, __builtin_floorf(x))
SWM_MATH1(fract, __builtin_fminf(x - __builtin_floorf(x), 0.99999994f))
SWM_MATH1(log, __builtin_logf(x))
SWM_MATH1(log2, __builtin_log2f(x))
SWM_MATH1(log10, __builtin_log10f(x))
SWM_MATH1(rint, __builtin_rintf(x))
SWM_MATH1(round, __builtin_roundf(x))
SWM_MATH1(rsqrt, 1.0f / __builtin_sqrtf(x))
SWM_MATH1(sin, __builtin_sinf(x))
SWM_MATH1(sinh, __builtin_sinhf(x))
SWM_MATH1(sinpi, float(__builtin_sin(3.14159265358979323846 * (double)x)))
SWM_MATH1(sqrt, __builtin_sqrtf(x))
SWM_MATH1(tan, __builtin_tanf(x))
SWM_MATH1(tanh, __builtin_tanhf(x))
SWM_MATH1(tanpi, float(__builtin_tan(3.14159265358979323846 * (double)x)))
SWM_MATH1(trunc, __builtin_truncf(x))
SWM_MATH1(saturate, __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f))
#undef SWM_MATH1

#define SWM_MATH2(name, expression)                                                      \
  template <class A, class B, class R = detail::both_t<A, B>, detail::when_float<R> = 0> \
  inline R name(A a, B b) {                                                              \
    return detail::map<R>([](float x, float y) { return expression; }, R(a), R(b));      \
  }
SWM_MATH2(atan2, __builtin_atan2f(x, y))
SWM_MATH2(copysign, __builtin_copysignf(x, y))
SWM_MATH2(divide, x / y)
SWM_MATH2(fdim, __builtin_fdimf(x, y))
SWM_MATH2(fmax, __builtin_fmaxf(x, y))
SWM_MATH2(fmin, __builtin_fminf(x, y))
SWM_MATH2(fmod, __builtin_fmodf(x, y))
SWM_MATH2(pow, __builtin_powf(x, y))
SWM_MATH2(powr, __builtin_powf(x, y))
SWM_MATH2(step, y < x ? 0.0f : 1.0f)
#undef SWM_MATH2

// One rounding: a double holds the product of two floats, and of two halves, exactly.
template <class A, class B, class C, class R = detail::both_t<A, B, C>, detail::when_float<R> = 0>
inline R fma(A a, B b, C c) {
  typedef element_t<R> E;
  return detail::map<R>(
      [](E x, E y, E z) {
        return sizeof(E) == 4 ? E(__builtin_fmaf(x, y, z))
                              : E(__builtin_fma((double)x, (double)y, (double)z));
      },
      R(a), R(b), R(c));
}

// min and max compare only; fmin and fmax prefer a number to a NaN.
template <class A, class B, class R = detail::both_t<A, B>>
inline R min(A a, B b) {
  return detail::map<R>([](element_t<R> x, element_t<R> y) { return y < x ? y : x; }, R(a), R(b));
}
template <class A, class B, class R = detail::both_t<A, B>>
inline R max(A a, B b) {
  return detail::map<R>([](element_t<R> x, element_t<R> y) { return x < y ? y : x; }, R(a), R(b));
}
#define SWM_THREE(prefix)                                                     \
  template <class T>                                                          \
  inline T prefix##min3(T a, T b, T c) {                                      \
    return prefix##min(a, prefix##min(b, c));                                 \
  }                                                                           \
  template <class T>                                                          \
  inline T prefix##max3(T a, T b, T c) {                                      \
    return prefix##max(a, prefix##max(b, c));                                 \
  }                                                                           \
  template <class T>                                                          \
  inline T prefix##median3(T a, T b, T c) {                                   \
    return prefix##max(prefix##min(a, b), prefix##min(prefix##max(a, b), c)); \
  }
SWM_THREE()
SWM_THREE(f)
#undef SWM_THREE

template <class T, class L, class H>
inline T clamp(T x, L low, H high) {
  return min(max(x, T(low)), T(high));
}
template <class A, class B, class C, class R = detail::both_t<A, B, C>, detail::when_float<R> = 0>
inline R mix(A x, B y, C a) {
  return R(x) + (R(y) - R(x)) * R(a);
}
template <class T, detail::when_float<T> = 0>
inline T sign(T v) {
  typedef element_t<T> E;
  return detail::map<T>([](E x) { return x > E(0)   ? E(1)
                                         : x < E(0) ? E(-1)
                                         : x == x   ? x
                                                    : E(0); },
                        v);
}
template <class A, class B, class C, class R = detail::both_t<A, B, C>, detail::when_float<R> = 0>
inline R smoothstep(A edge0, B edge1, C x) {
  const R t = clamp((R(x) - R(edge0)) / (R(edge1) - R(edge0)), R(0), R(1));
  return t * t * (R(3) - R(2) * t);
}
template <class T, detail::when_float<T> = 0>
inline T abs(T v) {
  return fabs(v);
}
template <class T>
inline T sincos(T v, T& cosine) {
  cosine = cos(v);
  return sin(v);
}
template <class T>
inline T modf(T v, T& whole) {
  whole = trunc(v);
  return copysign(v - whole, v);
}
template <class T>
inline T ldexp(T v, int exponent) {
  return detail::map<T>([=](float x) { return __builtin_ldexpf(x, exponent); }, v);
}
inline float frexp(float v, int& exponent) { return __builtin_frexpf(v, &exponent); }
inline int ilogb(float v) { return __builtin_ilogbf(v); }
inline float nextafter(float x, float y) { return __builtin_nextafterf(x, y); }

#define SWM_TEST(name, expression)              \
  template <class T, detail::when_float<T> = 0> \
  inline detail::truth_t<T> name(T v) {         \
    return detail::map<detail::truth_t<T>>(     \
        [](element_t<T> e) {                    \
          const float x = float(e);             \
          (void)x;                              \
          return expression;                    \
        },                                      \
        v);                                     \
  }
SWM_TEST(isnan, __builtin_isnan(x))
SWM_TEST(isinf, __builtin_isinf(x) != 0)
SWM_TEST(isfinite, __builtin_isfinite(x))
SWM_TEST(isnormal,
         __builtin_fabsf(x) >= float(numeric_limits<element_t<T>>::min()) && __builtin_isfinite(x))
SWM_TEST(signbit, __builtin_signbit(x) != 0)
#undef SWM_TEST
template <class T>
inline detail::truth_t<T> isordered(T a, T b) {
  return !isnan(a) && !isnan(b);
}
template <class T>
inline detail::truth_t<T> isunordered(T a, T b) {
  return isnan(a) || isnan(b);
}

template <class T, enable_if_t<(length_v<T> > 1), int> = 0>
inline bool any(T v) {
  bool r = false;
  for (int i = 0; i < length_v<T>; i++) r |= bool(v[i]);
  return r;
}
template <class T, enable_if_t<(length_v<T> > 1), int> = 0>
inline bool all(T v) {
  bool r = true;
  for (int i = 0; i < length_v<T>; i++) r &= bool(v[i]);
  return r;
}
inline bool any(bool v) { return v; }
inline bool all(bool v) { return v; }
// b where the condition holds, a elsewhere.
template <class T, enable_if_t<is_scalar_v<T>, int> = 0>
inline T select(T a, T b, bool condition) {
  return condition ? b : a;
}
template <class T, class C, enable_if_t<(length_v<T> > 1) && length_v<C> == length_v<T>, int> = 0>
inline T select(T a, T b, C condition) {
  T r;
  for (int i = 0; i < length_v<T>; i++) r[i] = condition[i] ? b[i] : a[i];
  return r;
}

template <class T>
inline element_t<T> dot(T a, T b) {
  element_t<T> sum = 0;
  for (int i = 0; i < length_v<T>; i++) sum += a[i] * b[i];
  return sum;
}
template <class T>
inline T cross(T a, T b) {
  static_assert(length_v<T> == 3, "cross wants vectors of three");
  return T(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]);
}
template <class T>
inline element_t<T> length_squared(T v) {
  return dot(v, v);
}
template <class T>
inline element_t<T> length(T v) {
  return sqrt(dot(v, v));
}
template <class T>
inline element_t<T> distance_squared(T a, T b) {
  return length_squared(a - b);
}
template <class T>
inline element_t<T> distance(T a, T b) {
  return length(a - b);
}
template <class T>
inline T normalize(T v) {
  return v * rsqrt(dot(v, v));
}
template <class T>
inline T reflect(T incident, T normal) {
  return incident - normal * (element_t<T>(2) * dot(normal, incident));
}

#define SWM_VARIANTS      \
  using metal::acos;      \
  using metal::asin;      \
  using metal::atan;      \
  using metal::atan2;     \
  using metal::ceil;      \
  using metal::clamp;     \
  using metal::cos;       \
  using metal::cosh;      \
  using metal::distance;  \
  using metal::divide;    \
  using metal::dot;       \
  using metal::exp;       \
  using metal::exp10;     \
  using metal::exp2;      \
  using metal::fabs;      \
  using metal::floor;     \
  using metal::fma;       \
  using metal::fmax;      \
  using metal::fmin;      \
  using metal::fmod;      \
  using metal::length;    \
  using metal::log;       \
  using metal::log10;     \
  using metal::log2;      \
  using metal::max;       \
  using metal::min;       \
  using metal::normalize; \
  using metal::pow;       \
  using metal::powr;      \
  using metal::rint;      \
  using metal::round;     \
  using metal::rsqrt;     \
  using metal::sin;       \
  using metal::sincos;    \
  using metal::sinh;      \
  using metal::sqrt;      \
  using metal::tan;       \
  using metal::tanh;      \
  using metal::trunc;
namespace fast {
SWM_VARIANTS
}
namespace precise {
SWM_VARIANTS
}
#undef SWM_VARIANTS

}  // namespace metal
