// Vectors of the address-space pass: the compiler's own, because a class cannot be copied out of an
// address space. Nothing of this pass is run, so holes in conversions do not matter.
#pragma once

#include "base.h"

namespace metal {

template <class T, int N>
using vec = T __attribute__((ext_vector_type(N)));

template <class T, int N>
struct shape<T __attribute__((ext_vector_type(N)))> {
  typedef T element;
  static constexpr int length = N;
};

namespace detail {

template <class T, int N>
struct truth<T __attribute__((ext_vector_type(N)))> {
  typedef bool type __attribute__((ext_vector_type(N)));
};

// float4(a, b, ...) of anything.
template <class V>
struct maker {
  template <class... Parts>
  static V make(Parts...);
};

}  // namespace detail
}  // namespace metal

#define SWM_VECTORS(T)                                \
  typedef T T##2 __attribute__((ext_vector_type(2))); \
  typedef T T##3 __attribute__((ext_vector_type(3))); \
  typedef T T##4 __attribute__((ext_vector_type(4)));
SWM_VECTORS(float)
SWM_VECTORS(half)
SWM_VECTORS(bfloat)
SWM_VECTORS(int)
SWM_VECTORS(uint)
SWM_VECTORS(short)
SWM_VECTORS(ushort)
SWM_VECTORS(char)
SWM_VECTORS(uchar)
SWM_VECTORS(long)
SWM_VECTORS(ulong)
SWM_VECTORS(bool)
#undef SWM_VECTORS
