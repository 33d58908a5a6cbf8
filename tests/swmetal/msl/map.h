// Lifts functions of scalars to vectors; shared by the maths headers. Works for vec.h and for the
// compiler's own vectors of the address-space pass alike.
#pragma once

#if defined(SWM_ADDRESS_SPACES)
#include "vec_builtin.h"
#else
#include "vec.h"
#endif

namespace metal {
namespace detail {

template <bool IsVector>
struct lift {
  template <class R, class F, class... A>
  static R map(F f, A... a) {
    return R(f(a...));
  }
};
template <>
struct lift<true> {
  template <class R, class F, class... A>
  static R map(F f, A... a) {
    R r;
    for (int i = 0; i < length_v<R>; i++) r[i] = element_t<R>(f(element_t<A>(a[i])...));
    return r;
  }
};
// R with every lane f of the lanes of the arguments, which have the length of R.
template <class R, class F, class... A>
inline R map(F f, A... a) {
  return lift<(length_v<R> > 1)>::template map<R>(f, a...);
}

// The type that two operands of a builtin agree on: equal types; a vector and a scalar; half and
// float scalars. Others are as ambiguous as they are under Metal.
template <class A, class B, class = void>
struct both {};
template <class A>
struct both<A, A, void> {
  typedef A type;
};
template <class A, class B>
struct both<A, B, enable_if_t<(length_v<A> > 1) && is_scalar_v<B>>> {
  typedef A type;
};
template <class A, class B>
struct both<A, B, enable_if_t<is_scalar_v<A> && (length_v<B> > 1)>> {
  typedef B type;
};
template <class A, class B>
struct both<A, B, enable_if_t<is_float_v<A> && is_float_v<B> && !is_same_v<A, B>>> {
  typedef conditional_t<(sizeof(A) >= sizeof(B)), A, B> type;
};
template <class A, class B, class... R>
struct all_of {
  typedef typename all_of<typename both<A, B>::type, R...>::type type;
};
template <class A, class B>
struct all_of<A, B> : both<A, B> {};
template <class... A>
using both_t = typename all_of<A...>::type;

// The result of a function of floats: an integer scalar is taken as a float.
template <class T>
using float_t = conditional_t<is_integral_v<T>, float, T>;
template <class V>
using when_float = enable_if_t<is_float_v<element_t<V>>, int>;
template <class V>
using when_integer = enable_if_t<is_integral_v<element_t<V>>, int>;

// vec<bool, N>, or bool for a scalar.
template <class V>
using truth_t = typename truth<V>::type;

}  // namespace detail
}  // namespace metal
