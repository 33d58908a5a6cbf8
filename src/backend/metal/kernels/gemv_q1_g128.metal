// gemv_q1_g128: y = W x for binary weights in groups of 128 and 12-bit rows, bit-equal to the
// canonical sum (chunks of 512 inputs, groups ascending).
#include "backend/gpu/math/packed.h"
#include "backend/gpu/params/gemv.h"
#include "backend/metal/kernels/device.h"

TERN_EXPORT_LAYOUT(gemv_q1_g128_simdgroup, TernGemvParams, TERN_GEMV_LAYOUT)

namespace tern {

// Sum of those of 16 integers whose bit is set: at most 16 * 2047, which 16 bits hold.
inline tern_i32 selected(thread const short4 (&q)[4], tern_u32 bits) {
  short4 sum = short4(0);
  for (tern_u32 i = 0; i < 4U; ++i) {
    const tern_u32 b = bits >> (4U * i);
    sum += select(short4(0), q[i],
                  bool4((b & 1U) != 0U, (b & 2U) != 0U, (b & 4U) != 0U, (b & 8U) != 0U));
  }
  return sum.x + sum.y + sum.z + sum.w;
}

// The sum over the eight lanes of a group, in each of them.
inline tern_i32 group_sum(tern_i32 v) {
  v += simd_shuffle_xor(v, ushort(1));
  v += simd_shuffle_xor(v, ushort(2));
  v += simd_shuffle_xor(v, ushort(4));
  return v;
}

// One output row, eight chunks at a time. Lane l selects inputs 16 l to 16 l + 15 of each chunk,
// and then keeps chunk l % 8, group l / 8.
struct RowSum {
  device const ushort* bits;
  device const half* scales;
  tern_i32 kept;
  float y;
  bool is_first;
};

// Adds up to eight chunks in canonical order. All lanes take part; `a`, `sum` and `has_group`
// belong to the group that this lane keeps.
inline void fold(thread RowSum& row, tern_u32 own_group, bool has_group, float a, tern_i32 sum,
                 tern_u32 chunks, tern_u32 lane) {
  const float p = has_group ? static_cast<float>(row.scales[own_group]) * a : 0.0F;
  const float integer = static_cast<float>(gpu::binary_integer(2 * row.kept, sum));
  float acc = 0.0F;
  for (tern_u32 g = 0; g < 4U; ++g) {
    const ushort from = static_cast<ushort>((lane & 7U) + 8U * g);
    const float i = simd_shuffle(integer, from);
    const float scale = simd_shuffle(p, from);
    const bool is_there = simd_shuffle(static_cast<uint>(has_group), from) != 0U;
    acc = is_there ? fma(i, scale, acc) : acc;
  }
  for (tern_u32 c = 0; c < chunks; ++c) {
    const float chunk = simd_shuffle(acc, static_cast<ushort>(c));
    row.y = row.is_first ? chunk : row.y + chunk;
    row.is_first = false;
  }
}

inline void store_output(device uchar* arena, device const uchar* bias, constant TernGemvParams& p,
                         tern_u32 row, tern_u32 n, float y) {
  if ((p.flags & kTernGemvBias) != 0U)
    y = y + reinterpret_cast<device const float*>(bias + p.bias)[n];
  if ((p.flags & kTernGemvResidual) != 0U)
    y = input_row(arena, p.residual, p.residual_row_stride, row)[n] + y;
  output_row(arena, p.y, p.y_row_stride, row)[n] = y;
}

}  // namespace tern

// Threadgroups (ceil(outputs / 8), rows) of 128 threads: four SIMD groups of two outputs each.
kernel void gemv_q1_g128_simdgroup(device const uchar* weights [[buffer(0)]],
                                   device uchar* arena [[buffer(1)]],
                                   device const uchar* block [[buffer(2)]],
                                   constant TernGemvParams& p [[buffer(3)]],
                                   device const uchar* bias [[buffer(4)]],
                                   uint2 place [[threadgroup_position_in_grid]],
                                   uint lane [[thread_index_in_simdgroup]],
                                   uint simd [[simdgroup_index_in_threadgroup]]) {
  using namespace tern;
  const tern_u32 n = (place.x * 4U + simd) * 2U;
  // The same for all lanes of a SIMD group.
  const bool has_work = n < p.outputs && has_row(block, p.axis, place.y);
  if (has_work) {
    const bool has_second = n + 1U < p.outputs;
    const tern_u64 first_group = static_cast<tern_u64>(n) * p.groups;
    const tern_u64 second_group = has_second ? first_group + p.groups : first_group;
    device const uchar* codes = weights + p.weights;
    device const uchar* scales = codes + static_cast<tern_u64>(p.outputs) * p.groups * 16U;
    device const uchar* record = arena + p.records + place.y * p.record_bytes;
    device const short4* q = reinterpret_cast<device const short4*>(record);
    device const float* a = reinterpret_cast<device const float*>(record + p.scales_offset);
    device const tern_i32* sums = reinterpret_cast<device const tern_i32*>(a + p.groups);
    RowSum rows[2];
    for (tern_u32 r = 0; r < 2U; ++r) {
      const tern_u64 at = r == 0U ? first_group : second_group;
      rows[r].bits = reinterpret_cast<device const ushort*>(codes + at * 16U);
      rows[r].scales = reinterpret_cast<device const half*>(scales + at * 2U);
      rows[r].y = 0.0F;
      rows[r].is_first = true;
    }
    const tern_u32 chunks = (p.groups + 3U) / 4U;
    for (tern_u32 begin = 0; begin < chunks; begin += 8U) {
      const tern_u32 count = min(8U, chunks - begin);
      rows[0].kept = 0;
      rows[1].kept = 0;
      for (tern_u32 c = 0; c < count; ++c) {
        const tern_u32 group = (begin + c) * 4U + (lane >> 3U);
        const bool is_there = group < p.groups;
        const tern_u32 at = (begin + c) * 32U + lane;
        short4 v[4];
        for (tern_u32 i = 0; i < 4U; ++i) v[i] = is_there ? q[at * 4U + i] : short4(0);
        for (tern_u32 r = 0; r < 2U; ++r) {
          const tern_u32 bits = is_there ? rows[r].bits[at] : ushort(0);
          const tern_i32 sum = group_sum(selected(v, bits));
          rows[r].kept = (lane & 7U) == c ? sum : rows[r].kept;
        }
      }
      const tern_u32 own_group = (begin + (lane & 7U)) * 4U + (lane >> 3U);
      const bool has_group = own_group < p.groups;
      const float own_a = has_group ? a[own_group] : 0.0F;
      const tern_i32 own_sum = has_group ? sums[own_group] : 0;
      for (tern_u32 r = 0; r < 2U; ++r)
        fold(rows[r], own_group, has_group, own_a, own_sum, count, lane);
    }
    if (lane == 0U) store_output(arena, bias, p, place.y, n, rows[0].y);
    if (lane == 1U && has_second) store_output(arena, bias, p, place.y, n + 1U, rows[1].y);
  }
}
