// Turns bound arguments and thread positions into the parameters of a kernel; used by the thunks
// that the rewriter appends. Also function constants and threadgroup variables.
#pragma once

#include "map.h"

namespace metal {
namespace bind {

enum class Builtin {
  thread_position_in_grid,
  threadgroup_position_in_grid,
  thread_position_in_threadgroup,
  thread_index_in_threadgroup,
  thread_index_in_simdgroup,
  simdgroup_index_in_threadgroup,
  threads_per_threadgroup,
  dispatch_threads_per_threadgroup,
  threadgroups_per_grid,
  threads_per_grid,
  threads_per_simdgroup,
  simdgroups_per_threadgroup,
  dispatch_simdgroups_per_threadgroup,
  quadgroup_index_in_threadgroup,
  thread_index_in_quadgroup,
  thread_execution_width = threads_per_simdgroup
};

struct Buffer {
  const swm_args* args;
  int index;
  bool is_there = true;  // false: its function constant is false, the parameter is not to be used
};
struct GroupMemory {
  const swm_args* args;
  int index;
};
struct Position {
  const swm_thread* thread;
  Builtin what;
};

inline swm_dim position(const swm_thread* t, Builtin what) {
  typedef Builtin B;
  switch (what) {
    case B::thread_position_in_grid:
      return t->grid_position;
    case B::threadgroup_position_in_grid:
      return t->group_position;
    case B::thread_position_in_threadgroup:
      return t->position_in_group;
    case B::thread_index_in_threadgroup:
      return {t->index, 0, 0};
    case B::thread_index_in_simdgroup:
      return {t->lane, 0, 0};
    case B::simdgroup_index_in_threadgroup:
      return {t->simd_group, 0, 0};
    case B::threads_per_threadgroup:
      return t->group_size;
    case B::dispatch_threads_per_threadgroup:
      return t->full_group_size;
    case B::threadgroups_per_grid:
      return t->groups;
    case B::threads_per_grid:
      return t->grid;
    case B::threads_per_simdgroup:
      return {SWM_LANES, 0, 0};
    case B::simdgroups_per_threadgroup:
      return {t->simd_groups, 0, 0};
    case B::dispatch_simdgroups_per_threadgroup:
      return {t->full_simd_groups, 0, 0};
    case B::quadgroup_index_in_threadgroup:
      return {t->index / 4, 0, 0};
    case B::thread_index_in_quadgroup:
      return {t->lane % 4, 0, 0};
  }
}

template <class P>
struct parameter {
  static_assert(is_scalar_v<P>, "a kernel parameter is a pointer, a reference or a position");
  static P get(const Position& p) { return P(position(p.thread, p.what).x); }
};
template <class T, int N>
struct parameter<vec<T, N>> {
  static vec<T, N> get(const Position& p) {
    const swm_dim v = position(p.thread, p.what);
    const uint xyz[3] = {v.x, v.y, v.z};
    vec<T, N> r;
    for (int i = 0; i < N; i++) r[i] = T(xyz[i]);
    return r;
  }
};
template <class T>
struct parameter<T*> {
  static T* get(const Buffer& b) {
    if (!b.is_there) return nullptr;
    if (!b.args->buffer[b.index]) swm_g->fail("nothing is bound to buffer", b.index, 0);
    return static_cast<T*>(b.args->buffer[b.index]);
  }
  static T* get(const GroupMemory& g) { return static_cast<T*>(g.args->group_memory[g.index]); }
};
template <class T>
struct parameter<T&> {
  static T& get(const Buffer& b) {
    if (b.is_there && b.args->buffer_bytes[b.index] < sizeof(T))
      swm_g->fail("fewer bytes are bound than the reference parameter has, at buffer", b.index, 0);
    return *parameter<T*>::get(b);
  }
  static T& get(const GroupMemory& g) {
    if (g.args->group_bytes[g.index] < sizeof(T))
      swm_g->fail(
          "less threadgroup memory is bound than the reference parameter has, at threadgroup",
          g.index, 0);
    return *parameter<T*>::get(g);
  }
};

template <class... P, class... A>
inline void call(void (*kernel)(P...), const A&... arguments) {
  kernel(parameter<P>::get(arguments)...);
}

// Types of function constants by their numbers in MTLDataType.
template <class T>
constexpr uint type_code() {
  return __is_same(T, float)    ? 3
         : __is_same(T, half)   ? 16
         : __is_same(T, int)    ? 29
         : __is_same(T, uint)   ? 33
         : __is_same(T, short)  ? 37
         : __is_same(T, ushort) ? 41
         : __is_same(T, char)   ? 45
         : __is_same(T, uchar)  ? 49
         : __is_same(T, bool)   ? 53
         : __is_same(T, long)   ? 81
         : __is_same(T, ulong)  ? 85
                                : 0;
}

}  // namespace bind

template <class T>
inline T swm_constant_value(uint index) {
  return *static_cast<const T*>(swm_g->constant(index));
}

// A function-scope threadgroup variable lives with the executor; one per place and type.
template <class T, int Place>
struct swm_group_key {
  static constexpr char key = 0;
};
template <class T, int Place>
constexpr char swm_group_key<T, Place>::key;
template <class T, int Place>
inline T& swm_group_variable() {
  return *static_cast<T*>(swm_g->group_variable(&swm_group_key<T, Place>::key, sizeof(T)));
}

}  // namespace metal

// How a shared object shows its modules: pointers to them stand side by side in one section.
#define SWM_SECTION __attribute__((section("swm_entries"), used, retain))
extern "C" {
extern const swm_module* const __start_swm_entries[] __attribute__((visibility("hidden")));
extern const swm_module* const __stop_swm_entries[] __attribute__((visibility("hidden")));

__attribute__((weak, visibility("default"))) const swm_module* const* swm_modules(unsigned* count) {
  *count = unsigned(__stop_swm_entries - __start_swm_entries);
  return __start_swm_entries;
}
__attribute__((weak, visibility("default"))) unsigned swm_connect(unsigned abi,
                                                                  const swm_api* api) {
  if (abi == SWM_ABI_VERSION) swm_g = api;
  return SWM_ABI_VERSION;
}
}
