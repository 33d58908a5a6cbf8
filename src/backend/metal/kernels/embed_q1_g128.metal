// embed_q1_g128: rows of a packed table by token id, decoded to floats.
#include "backend/gpu/params/rowwise.h"
#include "backend/metal/kernels/device.h"

TERN_EXPORT_LAYOUT(embed_q1_g128, TernEmbedParams, TERN_EMBED_LAYOUT)

// Threadgroups (groups of 128 columns, rows) of 128 threads. An id out of range writes zeros, sets
// the status word and reads nothing of the table.
kernel void embed_q1_g128(device const uchar* weights [[buffer(0)]],
                          device uchar* arena [[buffer(1)]],
                          device const uchar* block [[buffer(2)]],
                          constant TernEmbedParams& p [[buffer(3)]],
                          uint2 place [[threadgroup_position_in_grid]],
                          uint2 thread_place [[thread_position_in_threadgroup]]) {
  using namespace tern;
  if (has_row(block, p.axis, place.y)) {
    const tern_i32 id = reinterpret_cast<device const tern_i32*>(block + p.ids)[place.y];
    const tern_u32 k = thread_place.x;
    device float* y = output_row(arena, p.y, p.y_row_stride, place.y) + place.x * 128U;
    if (id >= 0 && static_cast<tern_u32>(id) < p.table_rows) {
      const tern_u32 groups = p.width / 128U;
      const tern_u64 at = static_cast<tern_u64>(id) * groups + place.x;
      device const uchar* codes = weights + p.table;
      device const uchar* scales = codes + static_cast<tern_u64>(p.table_rows) * groups * 16U;
      const float d = static_cast<float>(reinterpret_cast<device const half*>(scales)[at]);
      const tern_u32 bits = codes[at * 16U + k / 8U];
      y[k] = (bits >> (k % 8U) & 1U) != 0U ? d : -d;
    } else {
      y[k] = 0.0F;
      if (k == 0U)
        atomic_fetch_or_explicit(reinterpret_cast<device atomic_uint*>(arena + p.status), 1U,
                                 memory_order_relaxed);
    }
  }
}
