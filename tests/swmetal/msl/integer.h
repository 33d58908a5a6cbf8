// Integer builtins of MSL, and the conversions between packed bits and floats.
#pragma once

#include "map.h"
#include "math.h"

namespace metal {
namespace detail {

template <class T>
constexpr uint bits_v = 8 * sizeof(T);
template <class T>
constexpr ulong mask_v = ~0ul >> (64 - bits_v<T>);
template <class T>
using unsigned_t = conditional_t<
    sizeof(T) == 1, uchar,
    conditional_t<sizeof(T) == 2, ushort, conditional_t<sizeof(T) == 4, uint, ulong>>>;
typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;

template <class T>
inline T saturate_to(wide x) {
  const wide low = numeric_limits<T>::min(), high = numeric_limits<T>::max();
  return T(x < low ? low : x > high ? high : x);
}

}  // namespace detail

#define SWM_INTEGER1(name, expression)                     \
  template <class T, detail::when_integer<T> = 0>          \
  inline T name(T v) {                                     \
    typedef element_t<T> E;                                \
    return detail::map<T>(                                 \
        [](E x) -> E {                                     \
          const ulong bits = ulong(x) & detail::mask_v<E>; \
          (void)bits;                                      \
          return expression;                               \
        },                                                 \
        v);                                                \
  }
SWM_INTEGER1(abs, E(x < E(0) ? -x : x))
SWM_INTEGER1(popcount, E(__builtin_popcountl(bits)))
SWM_INTEGER1(clz,
             E(bits ? __builtin_clzl(bits) - int(64 - detail::bits_v<E>) : int(detail::bits_v<E>)))
SWM_INTEGER1(ctz, E(bits ? __builtin_ctzl(bits) : int(detail::bits_v<E>)))
SWM_INTEGER1(reverse_bits, E(__builtin_bitreverse64(bits) >> (64 - detail::bits_v<E>)))
#undef SWM_INTEGER1

#define SWM_INTEGER2(name, expression)                                                     \
  template <class A, class B, class R = detail::both_t<A, B>, detail::when_integer<R> = 0> \
  inline R name(A a, B b) {                                                                \
    typedef element_t<R> E;                                                                \
    typedef detail::wide W __attribute__((unused));                                        \
    return detail::map<R>([](E x, E y) -> E { return expression; }, R(a), R(b));           \
  }
SWM_INTEGER2(absdiff, E(x < y ? W(y) - W(x) : W(x) - W(y)))
SWM_INTEGER2(addsat, detail::saturate_to<E>(W(x) + W(y)))
SWM_INTEGER2(subsat, detail::saturate_to<E>(W(x) - W(y)))
SWM_INTEGER2(hadd, E((W(x) + W(y)) >> 1))
SWM_INTEGER2(rhadd, E((W(x) + W(y) + 1) >> 1))
SWM_INTEGER2(mulhi,
             E(W(detail::unsigned_wide(W(x)) * detail::unsigned_wide(W(y))) >> detail::bits_v<E>))
// The upper eight bits of mul24's operands are ignored.
SWM_INTEGER2(mul24, E(W(x << 8 >> 8) * W(y << 8 >> 8)))
SWM_INTEGER2(rotate,
             E(detail::unsigned_t<E>((ulong(x) & detail::mask_v<E>) << (uint(y) %
                                                                        detail::bits_v<E>) |
                                     (ulong(x) & detail::mask_v<E>) >>
                                         ((detail::bits_v<E> - uint(y) % detail::bits_v<E>) % 64))))
#undef SWM_INTEGER2

template <class T>
inline T mad24(T a, T b, T c) {
  return mul24(a, b) + c;
}
template <class T>
inline T madhi(T a, T b, T c) {
  return mulhi(a, b) + c;
}
template <class T>
inline T madsat(T a, T b, T c) {
  typedef element_t<T> E;
  static_assert(sizeof(E) <= 4, "madsat of 64 bits is not offered");
  typedef detail::wide W;
  return detail::map<T>([](E x, E y, E z) { return detail::saturate_to<E>(W(x) * W(y) + W(z)); }, a,
                        b, c);
}
template <class T>
inline T extract_bits(T v, uint offset, uint bits) {
  typedef element_t<T> E;
  return detail::map<T>(
      [=](E x) -> E {
        if (!bits) return E(0);
        const ulong cut = (ulong(x) & detail::mask_v<E>) >> offset & (~0ul >> (64 - bits));
        const bool is_negative = numeric_limits<E>::is_signed && (cut >> (bits - 1) & 1);
        return E(is_negative ? cut | ~(~0ul >> (64 - bits)) : cut);
      },
      v);
}
template <class T>
inline T insert_bits(T base, T insert, uint offset, uint bits) {
  typedef element_t<T> E;
  return detail::map<T>(
      [=](E x, E y) -> E {
        if (!bits) return x;
        const ulong mask = (~0ul >> (64 - bits)) << offset;
        return E((ulong(x) & ~mask) | (ulong(y) << offset & mask));
      },
      base, insert);
}

namespace detail {

inline float norm(float x, float low, float scale) {
  return __builtin_rintf(__builtin_fminf(__builtin_fmaxf(x, low), 1.0f) * scale);
}

}  // namespace detail

inline float4 unpack_unorm4x8_to_float(uint x) {
  return float4(float(x & 255), float(x >> 8 & 255), float(x >> 16 & 255), float(x >> 24)) / 255.0f;
}
inline float4 unpack_snorm4x8_to_float(uint x) {
  const float4 v = float4(float(int8_t(x)), float(int8_t(x >> 8)), float(int8_t(x >> 16)),
                          float(int8_t(x >> 24)));
  return max(v / 127.0f, float4(-1.0f));
}
inline float2 unpack_unorm2x16_to_float(uint x) {
  return float2(float(x & 65535), float(x >> 16)) / 65535.0f;
}
inline uint pack_float_to_unorm4x8(float4 v) {
  uint r = 0;
  for (int i = 0; i < 4; i++) r |= uint(detail::norm(v[i], 0.0f, 255.0f)) << (8 * i);
  return r;
}
inline uint pack_float_to_snorm4x8(float4 v) {
  uint r = 0;
  for (int i = 0; i < 4; i++) r |= (uint(int(detail::norm(v[i], -1.0f, 127.0f))) & 255u) << (8 * i);
  return r;
}

}  // namespace metal
