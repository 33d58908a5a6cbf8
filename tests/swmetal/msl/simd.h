// Barriers and SIMD-group collectives of MSL. Each lane hands its value to the executor, waits for
// the others, and reads theirs.
#pragma once

#include "integer.h"
#include "math.h"

namespace metal {

enum class mem_flags : uint {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8
};
inline mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }

inline void threadgroup_barrier(mem_flags, int line = __builtin_LINE()) { swm_g->barrier(line); }

namespace detail {

// Numbers of the collectives; the executor treats kSimdBarrier alone as ordering memory.
enum Op {
  kSimdBarrier = 0,
  kSum,
  kProduct,
  kMax,
  kMin,
  kAnd,
  kOr,
  kXor,
  kShuffle,
  kBroadcast,
  kBroadcastFirst,
  kShuffleXor,
  kShuffleDown,
  kShuffleUp,
  kRotateDown,
  kRotateUp,
  kFillDown,
  kFillUp,
  kInclusiveSum,
  kExclusiveSum,
  kInclusiveProduct,
  kExclusiveProduct,
  kAny,
  kAll,
  kBallot,
  kActive,
  kMultiply
};

template <class T>
SWM_UNSEEN inline swm_exchange* exchange(Op op, int line, const T& v) {
  static_assert(sizeof(T) <= 64, "too large for a SIMD-group operation");
  return swm_g->exchange(op, line, &v, sizeof(T));
}
template <class T>
SWM_UNSEEN inline T brought_by(const swm_exchange* e, uint lane) {
  T v;
  __builtin_memcpy_inline(&v, e->slot[lane], sizeof(T));
  return v;
}
inline bool takes_part(const swm_exchange* e, uint lane) {
  return lane < 32 && (e->mask >> lane & 1);
}
template <class T>
SWM_UNSEEN inline T from_lane(const swm_exchange* e, uint lane, int line) {
  if (!takes_part(e, lane)) {
    swm_g->fail("SIMD shuffle from an inactive lane", int(lane), line);
    lane = swm_g->self()->lane;
  }
  return brought_by<T>(e, lane);
}

// Folds the lanes that take part pairwise, as a butterfly would: 16 apart, 8 apart, ...
template <class T, class F>
SWM_UNSEEN inline T reduce(Op op, int line, T x, F f) {
  swm_exchange* e = exchange(op, line, x);
  if (!e->is_done) {
    T v[32];
    bool has[32];
    for (uint i = 0; i < 32; i++) {
      has[i] = takes_part(e, i);
      if (has[i]) v[i] = brought_by<T>(e, i);
    }
    for (int step = 16; step; step >>= 1)
      for (int i = 0; i < step; i++) {
        if (!has[i + step]) continue;
        v[i] = has[i] ? f(v[i], v[i + step]) : v[i + step];
        has[i] = true;
      }
    __builtin_memcpy_inline(e->result, &v[0], sizeof(T));
    e->is_done = 1;
  }
  T r;
  __builtin_memcpy_inline(&r, e->result, sizeof(T));
  return r;
}
// Folds the lanes before this one (and this one) in ascending order.
template <class T, class F>
SWM_UNSEEN inline T scan(Op op, int line, T x, T start, bool with_own, F f) {
  const swm_exchange* e = exchange(op, line, x);
  const uint own = swm_g->self()->lane;
  for (uint i = 0; i < own + with_own; i++)
    if (takes_part(e, i)) start = f(start, brought_by<T>(e, i));
  return start;
}

}  // namespace detail

inline void simdgroup_barrier(mem_flags, int line = __builtin_LINE()) {
  swm_g->exchange(detail::kSimdBarrier, line, nullptr, 0);
}

#define SWM_REDUCE(name, op, expression)                                                \
  template <class T>                                                                    \
  inline T simd_##name(T x, int line = __builtin_LINE()) {                              \
    return detail::reduce(detail::op, line, x, [](T a, T b) { return T(expression); }); \
  }
SWM_REDUCE(sum, kSum, a + b)
SWM_REDUCE(product, kProduct, a* b)
SWM_REDUCE(max, kMax, metal::max(a, b))
SWM_REDUCE(min, kMin, metal::min(a, b))
SWM_REDUCE(and, kAnd, a& b)
SWM_REDUCE(or, kOr, a | b)
SWM_REDUCE(xor, kXor, a ^ b)
#undef SWM_REDUCE

#define SWM_SCAN(name, op, start, with_own, expression)           \
  template <class T>                                              \
  inline T simd_prefix_##name(T x, int line = __builtin_LINE()) { \
    return detail::scan(detail::op, line, x, T(start), with_own,  \
                        [](T a, T b) { return T(expression); });  \
  }
SWM_SCAN(inclusive_sum, kInclusiveSum, 0, true, a + b)
SWM_SCAN(exclusive_sum, kExclusiveSum, 0, false, a + b)
SWM_SCAN(inclusive_product, kInclusiveProduct, 1, true, a* b)
SWM_SCAN(exclusive_product, kExclusiveProduct, 1, false, a* b)
#undef SWM_SCAN

template <class T>
inline T simd_shuffle(T x, ushort lane, int line = __builtin_LINE()) {
  return detail::from_lane<T>(detail::exchange(detail::kShuffle, line, x), lane, line);
}
template <class T>
inline T simd_broadcast(T x, ushort lane, int line = __builtin_LINE()) {
  return detail::from_lane<T>(detail::exchange(detail::kBroadcast, line, x), lane, line);
}
template <class T>
inline T simd_broadcast_first(T x, int line = __builtin_LINE()) {
  const swm_exchange* e = detail::exchange(detail::kBroadcastFirst, line, x);
  return detail::brought_by<T>(e, uint(__builtin_ctz(e->mask)));
}
template <class T>
inline T simd_shuffle_xor(T x, ushort mask, int line = __builtin_LINE()) {
  const swm_exchange* e = detail::exchange(detail::kShuffleXor, line, x);
  return detail::from_lane<T>(e, swm_g->self()->lane ^ mask, line);
}
template <class T>
inline T simd_shuffle_rotate_down(T x, ushort delta, int line = __builtin_LINE()) {
  const swm_exchange* e = detail::exchange(detail::kRotateDown, line, x);
  return detail::from_lane<T>(e, (swm_g->self()->lane + delta) % 32, line);
}
template <class T>
inline T simd_shuffle_rotate_up(T x, ushort delta, int line = __builtin_LINE()) {
  const swm_exchange* e = detail::exchange(detail::kRotateUp, line, x);
  return detail::from_lane<T>(e, (swm_g->self()->lane + 32u - delta % 32u) % 32, line);
}
// Beyond the end of the SIMD-group a lane keeps its own value.
template <class T>
inline T simd_shuffle_down(T x, ushort delta, int line = __builtin_LINE()) {
  const swm_exchange* e = detail::exchange(detail::kShuffleDown, line, x);
  const uint lane = swm_g->self()->lane + delta;
  return lane < 32 ? detail::from_lane<T>(e, lane, line) : x;
}
template <class T>
inline T simd_shuffle_up(T x, ushort delta, int line = __builtin_LINE()) {
  const swm_exchange* e = detail::exchange(detail::kShuffleUp, line, x);
  const uint lane = swm_g->self()->lane;
  return lane >= delta ? detail::from_lane<T>(e, lane - delta, line) : x;
}
// Lanes beyond the end come from the other value instead, as if both lay side by side.
template <class T>
inline T simd_shuffle_and_fill_down(T x, T fill, ushort delta, int line = __builtin_LINE()) {
  struct Pair {
    T x, fill;
  };
  const swm_exchange* e = detail::exchange(detail::kFillDown, line, Pair{x, fill});
  const uint lane = swm_g->self()->lane + delta;
  const Pair p = detail::from_lane<Pair>(e, lane % 32, line);
  return lane < 32 ? p.x : p.fill;
}
template <class T>
inline T simd_shuffle_and_fill_up(T x, T fill, ushort delta, int line = __builtin_LINE()) {
  struct Pair {
    T x, fill;
  };
  const swm_exchange* e = detail::exchange(detail::kFillUp, line, Pair{x, fill});
  const uint lane = swm_g->self()->lane;
  const Pair p = detail::from_lane<Pair>(e, (lane + 32u - delta) % 32, line);
  return lane >= delta ? p.x : p.fill;
}

class simd_vote {
 public:
  typedef ulong vote_t;
  explicit constexpr simd_vote(vote_t v = 0) : v_(v) {}
  explicit constexpr operator vote_t() const { return v_; }
  bool all() const { return (v_ & 0xffffffffu) == 0xffffffffu; }
  bool any() const { return v_ != 0; }

 private:
  vote_t v_;
};
inline bool simd_any(bool p, int line = __builtin_LINE()) {
  return detail::reduce(detail::kAny, line, int(p), [](int a, int b) { return a | b; }) != 0;
}
inline bool simd_all(bool p, int line = __builtin_LINE()) {
  return detail::reduce(detail::kAll, line, int(p), [](int a, int b) { return a & b; }) != 0;
}
inline simd_vote simd_ballot(bool p, int line = __builtin_LINE()) {
  const swm_exchange* e = detail::exchange(detail::kBallot, line, int(p));
  ulong v = 0;
  for (uint i = 0; i < 32; i++)
    if (detail::takes_part(e, i) && detail::brought_by<int>(e, i)) v |= 1ul << i;
  return simd_vote(v);
}
inline simd_vote simd_active_threads_mask(int line = __builtin_LINE()) {
  return simd_vote(detail::exchange(detail::kActive, line, 0)->mask);
}
inline bool simd_is_first(int line = __builtin_LINE()) {
  const uint mask = detail::exchange(detail::kActive, line, 0)->mask;
  return swm_g->self()->lane == uint(__builtin_ctz(mask));
}

}  // namespace metal
