// First line of a file in the address-space pass (tools/check_address_spaces.sh): device, constant
// and threadgroup are real address spaces here, so that a wrong or missing one is an error.
#pragma once

#define SWM_ADDRESS_SPACES 1
#include "vec_builtin.h"
// After the vectors, so that their definitions keep their plain names.
#define SWM_MAKE(V, ...) (::metal::detail::maker<V>::make(__VA_ARGS__))
#define float2(...) SWM_MAKE(float2, __VA_ARGS__)
#define float3(...) SWM_MAKE(float3, __VA_ARGS__)
#define float4(...) SWM_MAKE(float4, __VA_ARGS__)
#define half2(...) SWM_MAKE(half2, __VA_ARGS__)
#define half3(...) SWM_MAKE(half3, __VA_ARGS__)
#define half4(...) SWM_MAKE(half4, __VA_ARGS__)
#define int2(...) SWM_MAKE(int2, __VA_ARGS__)
#define int3(...) SWM_MAKE(int3, __VA_ARGS__)
#define int4(...) SWM_MAKE(int4, __VA_ARGS__)
#define uint2(...) SWM_MAKE(uint2, __VA_ARGS__)
#define uint3(...) SWM_MAKE(uint3, __VA_ARGS__)
#define uint4(...) SWM_MAKE(uint4, __VA_ARGS__)
#define short2(...) SWM_MAKE(short2, __VA_ARGS__)
#define short4(...) SWM_MAKE(short4, __VA_ARGS__)
#define ushort2(...) SWM_MAKE(ushort2, __VA_ARGS__)
#define ushort4(...) SWM_MAKE(ushort4, __VA_ARGS__)
#define char2(...) SWM_MAKE(char2, __VA_ARGS__)
#define char4(...) SWM_MAKE(char4, __VA_ARGS__)
#define uchar2(...) SWM_MAKE(uchar2, __VA_ARGS__)
#define uchar4(...) SWM_MAKE(uchar4, __VA_ARGS__)
#define long2(...) SWM_MAKE(long2, __VA_ARGS__)
#define ulong2(...) SWM_MAKE(ulong2, __VA_ARGS__)
#define bool2(...) SWM_MAKE(bool2, __VA_ARGS__)
#define bool4(...) SWM_MAKE(bool4, __VA_ARGS__)
#include "msl.h"

#undef device
#undef threadgroup
#undef constant
#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))

namespace metal {

#define SWM_ATOMICS(space)                                                                 \
  template <class T>                                                                       \
  T atomic_load_explicit(const volatile space atomic<T>*, memory_order);                   \
  template <class T>                                                                       \
  void atomic_store_explicit(volatile space atomic<T>*, identity_t<T>, memory_order);      \
  template <class T>                                                                       \
  T atomic_exchange_explicit(volatile space atomic<T>*, identity_t<T>, memory_order);      \
  template <class T>                                                                       \
  bool atomic_compare_exchange_weak_explicit(volatile space atomic<T>*, T*, identity_t<T>, \
                                             memory_order, memory_order);                  \
  SWM_ATOMIC(space, add)                                                                   \
  SWM_ATOMIC(space, sub)                                                                   \
  SWM_ATOMIC(space, max)                                                                   \
  SWM_ATOMIC(space, min)                                                                   \
  SWM_ATOMIC(space, or)                                                                    \
  SWM_ATOMIC(space, and)                                                                   \
  SWM_ATOMIC(space, xor)
#define SWM_ATOMIC(space, name) \
  template <class T>            \
  T atomic_fetch_##name##_explicit(volatile space atomic<T>*, identity_t<T>, memory_order);
SWM_ATOMICS(device)
SWM_ATOMICS(threadgroup)
#undef SWM_ATOMICS
#undef SWM_ATOMIC

// The element type that simdgroup_load and simdgroup_store compare, without its address space.
#define SWM_STRIP(space)                             \
  template <class T>                                 \
  struct remove_cvref<space T> : remove_cvref<T> {}; \
  template <class T>                                 \
  struct remove_cvref<const space T> : remove_cvref<T> {};
SWM_STRIP(__attribute__((address_space(1))))
SWM_STRIP(__attribute__((address_space(2))))
SWM_STRIP(__attribute__((address_space(3))))
#undef SWM_STRIP

template <class T, int Place>
threadgroup T& swm_group_variable_as();

}  // namespace metal
#define swm_group_variable swm_group_variable_as
