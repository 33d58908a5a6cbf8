// Scalar types and type traits of the stand-in for <metal_stdlib>. No standard headers.
#pragma once

#include "swm_abi.h"

extern "C" {
// Weak and hidden: one for all the .metal files of a shared object.
__attribute__((weak, visibility("hidden"))) const swm_api* swm_g;

// The compiler calls these to round to bfloat; Debian's libgcc does not have them yet.
__attribute__((weak, visibility("hidden"))) __bf16 __truncsfbf2(float x) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  const unsigned rounded = x != x ? bits | 1u << 22 : bits + 0x7fffu + (bits >> 16 & 1);
  return __builtin_bit_cast(__bf16, static_cast<unsigned short>(rounded >> 16));
}
__attribute__((weak, visibility("hidden"))) __bf16 __truncdfbf2(double x) {
  return __truncsfbf2(static_cast<float>(x));
}
}

#pragma clang diagnostic ignored "-Wduplicate-decl-specifier"
#pragma clang diagnostic ignored "-Wuser-defined-literals"
#pragma clang diagnostic ignored "-Wreserved-user-defined-literal"

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef _Float16 half;
typedef __bf16 bfloat;

// The thread sanitizer must not see how lanes hand values to each other: a collective gives no
// ordering of memory.
#define SWM_UNSEEN __attribute__((no_sanitize("thread")))

namespace metal {

template <bool B, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool B, class T = void>
using enable_if_t = typename enable_if<B, T>::type;

template <bool B, class T, class F>
struct conditional {
  typedef T type;
};
template <class T, class F>
struct conditional<false, T, F> {
  typedef F type;
};
template <bool B, class T, class F>
using conditional_t = typename conditional<B, T, F>::type;

template <class T>
struct identity {
  typedef T type;
};
// A parameter type that takes no part in deduction.
template <class T>
using identity_t = typename identity<T>::type;

template <class A, class B>
struct is_same {
  static constexpr bool value = __is_same(A, B);
};
template <class A, class B>
constexpr bool is_same_v = __is_same(A, B);

template <class T>
struct remove_cvref {
  typedef T type;
};
template <class T>
struct remove_cvref<T&> : remove_cvref<T> {};
template <class T>
struct remove_cvref<const T> : remove_cvref<T> {};
template <class T>
struct remove_cvref<volatile T> : remove_cvref<T> {};
template <class T>
struct remove_cvref<const volatile T> : remove_cvref<T> {};

template <class T>
constexpr bool is_float_v = __is_same(T, float) || __is_same(T, half) || __is_same(T, bfloat);
template <class T>
constexpr bool is_integral_v = __is_integral(T);
template <class T>
constexpr bool is_scalar_v = is_float_v<T> || is_integral_v<T>;
template <class T>
struct is_floating_point {
  static constexpr bool value = is_float_v<T>;
};
template <class T>
struct is_integral {
  static constexpr bool value = is_integral_v<T>;
};

// Element type and length of a vector; a scalar is a vector of one. vec.h adds the vectors.
template <class V>
struct shape {
  typedef V element;
  static constexpr int length = 1;
};
template <class V>
using element_t = typename shape<V>::element;
template <class V>
constexpr int length_v = shape<V>::length;

namespace detail {

// What comparing gives; vec.h adds the vectors.
template <class V>
struct truth {
  typedef bool type;
};

}  // namespace detail

template <class To, class From>
inline To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type between sizes that differ");
  return __builtin_bit_cast(To, from);
}

template <class T>
struct numeric_limits {
  static constexpr bool is_signed = T(-1) < T(0);
  static constexpr T max() {
    return is_signed ? T(~(1ul << (8 * sizeof(T) - 1)) & (~0ul >> (64 - 8 * sizeof(T)))) : T(~0ul);
  }
  static constexpr T min() { return is_signed ? T(-max() - 1) : T(0); }
  static constexpr T lowest() { return min(); }
};
template <>
struct numeric_limits<float> {
  static constexpr float max() { return __FLT_MAX__; }
  static constexpr float min() { return __FLT_MIN__; }
  static constexpr float lowest() { return -__FLT_MAX__; }
  static constexpr float epsilon() { return __FLT_EPSILON__; }
  static constexpr float infinity() { return __builtin_inff(); }
  static constexpr float quiet_NaN() { return __builtin_nanf(""); }
};
template <>
struct numeric_limits<half> {
  static constexpr half max() { return half(65504.0f); }
  static constexpr half min() { return half(6.103515625e-5f); }
  static constexpr half lowest() { return half(-65504.0f); }
  static constexpr half epsilon() { return half(9.765625e-4f); }
  static constexpr half infinity() { return half(__builtin_inff()); }
  static constexpr half quiet_NaN() { return half(__builtin_nanf("")); }
};

}  // namespace metal
