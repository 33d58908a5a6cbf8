// argmax: the lowest index of the largest value of a row, in parts that one threadgroup merges.
#include "backend/gpu/params/rowwise.h"
#include "backend/metal/kernels/device.h"

TERN_EXPORT_LAYOUT(argmax_parts, TernArgmaxParams, TERN_ARGMAX_LAYOUT)
TERN_EXPORT_LAYOUT(argmax_merge, TernArgmaxParams, TERN_ARGMAX_LAYOUT)

namespace tern {

struct Best {
  float value;
  tern_u32 flags;
  tern_i64 index;
};

inline Best nothing() {
  Best best;
  best.value = -INFINITY;
  best.flags = 0U;
  best.index = -1;
  return best;
}

inline Best better(Best a, Best b) {
  const bool take_b = b.index >= 0 && (a.index < 0 || b.value > a.value ||
                                       (b.value == a.value && b.index < a.index));
  Best best = a;
  if (take_b) best = b;
  best.flags = a.flags | b.flags;
  return best;
}

inline Best best_of_simd(Best mine) {
  for (ushort step = 16; step > 0; step >>= 1) {
    Best other;
    other.value = simd_shuffle_xor(mine.value, step);
    other.flags = simd_shuffle_xor(mine.flags, step);
    // Shuffles move 32 bits.
    const uint low = simd_shuffle_xor(static_cast<uint>(mine.index), step);
    const uint high = simd_shuffle_xor(static_cast<uint>(mine.index >> 32), step);
    other.index = static_cast<tern_i64>(static_cast<tern_u64>(high) << 32 | low);
    mine = better(mine, other);
  }
  return mine;
}

// The best of a threadgroup of 256 threads, in its first thread. All threads take part.
inline Best best_of_group(Best mine, threadgroup TernArgmax* simds, uint lane, uint simd) {
  mine = best_of_simd(mine);
  if (lane == 0U) {
    simds[simd].value = mine.value;
    simds[simd].flags = mine.flags;
    simds[simd].index = mine.index;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0U && simd == 0U)
    for (tern_u32 s = 1; s < 8U; ++s) {
      Best other;
      other.value = simds[s].value;
      other.flags = simds[s].flags;
      other.index = simds[s].index;
      mine = better(mine, other);
    }
  return mine;
}

inline void store(device TernArgmax* to, Best best) {
  to->value = best.value;
  to->flags = best.flags;
  to->index = best.index;
}

}  // namespace tern

// Threadgroups (parts, rows) of 256 threads. NaN is flagged and never chosen.
kernel void argmax_parts(device uchar* arena [[buffer(1)]],
                         device const uchar* block [[buffer(2)]],
                         constant TernArgmaxParams& p [[buffer(3)]],
                         uint2 place [[threadgroup_position_in_grid]],
                         uint2 thread_place [[thread_position_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint simd [[simdgroup_index_in_threadgroup]]) {
  using namespace tern;
  threadgroup TernArgmax simds[8];
  const bool has_work = has_row(block, p.axis, place.y);
  device const float* x = input_row(arena, p.x, p.x_row_stride, place.y);
  const tern_u64 begin = p.width * place.x / p.part_count;
  const tern_u64 end = has_work ? p.width * (place.x + 1U) / p.part_count : begin;
  Best mine = nothing();
  for (tern_u64 k = begin + thread_place.x; k < end; k += 256U) {
    const float value = x[k];
    const tern_u32 size = magnitude(value);
    if (size > 0x7F800000U) {
      mine.flags |= kTernArgmaxNan;
    } else {
      if (size < 0x7F800000U) mine.flags |= kTernArgmaxFinite;
      if (mine.index < 0 || value > mine.value) {
        mine.value = value;
        mine.index = static_cast<tern_i64>(k);
      }
    }
  }
  mine = best_of_group(mine, simds, lane, simd);
  if (thread_place.x == 0U && has_work)
    store(reinterpret_cast<device TernArgmax*>(arena + p.parts) +
              static_cast<tern_u64>(place.y) * p.part_count + place.x,
          mine);
}

// Threadgroups (1, rows) of 256 threads.
kernel void argmax_merge(device uchar* arena [[buffer(1)]],
                         device const uchar* block [[buffer(2)]],
                         constant TernArgmaxParams& p [[buffer(3)]],
                         uint2 place [[threadgroup_position_in_grid]],
                         uint2 thread_place [[thread_position_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint simd [[simdgroup_index_in_threadgroup]]) {
  using namespace tern;
  threadgroup TernArgmax simds[8];
  const bool has_work = has_row(block, p.axis, place.y);
  device const TernArgmax* parts = reinterpret_cast<device const TernArgmax*>(arena + p.parts) +
                                   static_cast<tern_u64>(place.y) * p.part_count;
  const tern_u32 count = has_work ? p.part_count : 0U;
  Best mine = nothing();
  for (tern_u32 i = thread_place.x; i < count; i += 256U) {
    Best other;
    other.value = parts[i].value;
    other.flags = parts[i].flags;
    other.index = parts[i].index;
    mine = better(mine, other);
  }
  mine = best_of_group(mine, simds, lane, simd);
  if (thread_place.x == 0U && has_work)
    store(reinterpret_cast<device TernArgmax*>(arena + p.result) + place.y, mine);
}
