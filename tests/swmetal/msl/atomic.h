// Atomics of MSL: relaxed, on device and threadgroup memory.
#pragma once

#include "base.h"

namespace metal {

enum memory_order { memory_order_relaxed = 0 };

template <class T>
struct atomic {
  T v;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;
typedef atomic<ulong> atomic_ulong;

template <class T>
inline T atomic_load_explicit(const volatile atomic<T>* a, memory_order) {
  T r;
  __atomic_load(const_cast<T*>(&a->v), &r, __ATOMIC_RELAXED);
  return r;
}
template <class T>
inline void atomic_store_explicit(volatile atomic<T>* a, identity_t<T> x, memory_order) {
  __atomic_store(const_cast<T*>(&a->v), &x, __ATOMIC_RELAXED);
}
template <class T>
inline T atomic_exchange_explicit(volatile atomic<T>* a, identity_t<T> x, memory_order) {
  T r;
  __atomic_exchange(const_cast<T*>(&a->v), &x, &r, __ATOMIC_RELAXED);
  return r;
}
template <class T>
inline bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* a, T* expected,
                                                  identity_t<T> x, memory_order, memory_order) {
  return __atomic_compare_exchange(const_cast<T*>(&a->v), expected, &x, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED);
}

#define SWM_MODIFY(name, expression)                                                              \
  template <class T>                                                                              \
  inline T atomic_fetch_##name##_explicit(volatile atomic<T>* p, identity_t<T> b, memory_order) { \
    T* at = const_cast<T*>(&p->v);                                                                \
    T a;                                                                                          \
    __atomic_load(at, &a, __ATOMIC_RELAXED);                                                      \
    for (;;) {                                                                                    \
      T next = T(expression);                                                                     \
      if (__atomic_compare_exchange(at, &a, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))    \
        return a;                                                                                 \
    }                                                                                             \
  }
SWM_MODIFY(add, a + b)
SWM_MODIFY(sub, a - b)
SWM_MODIFY(max, a < b ? b : a)
SWM_MODIFY(min, b < a ? b : a)
SWM_MODIFY(or, a | b)
SWM_MODIFY(and, a& b)
SWM_MODIFY(xor, a ^ b)
#undef SWM_MODIFY

}  // namespace metal
