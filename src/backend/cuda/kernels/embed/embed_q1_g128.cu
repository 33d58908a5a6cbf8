// embed_q1_g128: rows of a packed table (layout tiles16) by token id, decoded to floats.
#include "backend/cuda/kernels/device.cuh"
#include "backend/gpu/params/gemv.h"
#include "backend/gpu/params/rowwise.h"

TERN_EXPORT_LAYOUT(embed_q1_g128, TernEmbedParams, TERN_EMBED_LAYOUT)

// grid (groups of 128 columns, rows), 128 threads. An id out of range writes zeros, sets the
// status word and reads nothing of the table.
extern "C" __global__ void __launch_bounds__(128)
    embed_q1_g128(const tern_u8* weights, tern_u8* arena, const tern_u8* block,
                  const TernEmbedParams p) {
  using namespace tern::cuda;
  launch_dependents();
  dependency_wait();
  const tern_u32 row = blockIdx.y;
  if (!has_row(block, p.axis, row)) return;
  const tern_i32 id = reinterpret_cast<const tern_i32*>(block + p.ids)[row];
  const tern_u32 group = blockIdx.x;
  const tern_u32 groups = p.width / kTernGroup;
  float* y = float_row(arena, p.y, p.y_row_stride, row) + group * kTernGroup + threadIdx.x;
  if (id < 0 || static_cast<tern_u32>(id) >= p.table_rows) {
    *y = 0.0F;
    if (threadIdx.x == 0U) atomicOr(reinterpret_cast<tern_u32*>(arena + p.status), 1U);
    return;
  }
  const tern_u32 chunk = group / kTernChunkGroups;
  const tern_u32 slot = group % kTernChunkGroups;
  const tern_u32 left = groups - chunk * kTernChunkGroups;
  const tern_u32 in_chunk = left < kTernChunkGroups ? left : kTernChunkGroups;
  const tern_u32 in_tile = static_cast<tern_u32>(id) % kTernTileRows;
  const tern_u32 r = in_tile % 8U;
  const tern_u32 is_upper = in_tile / 8U;
  const tern_u8* at = weights + p.table +
                      static_cast<tern_u64>(static_cast<tern_u32>(id) / kTernTileRows) * groups *
                          kTernTileGroupBytes +
                      chunk * (kTernChunkGroups * kTernTileGroupBytes);
  const tern_u32 lane = 4U * r + (threadIdx.x >> 5);
  const bool is_odd_last = slot + 1U == in_chunk && (in_chunk & 1U) != 0U;
  const tern_u8* word = at + (slot >> 1) * 512U +
                        (is_odd_last ? lane * 8U : lane * 16U + (slot & 1U) * 8U) + is_upper * 4U;
  const tern_u32 bits = *reinterpret_cast<const tern_u32*>(word);
  const tern_u16 d_bits = *reinterpret_cast<const tern_u16*>(
      at + in_chunk * 256U + ((r * 2U + is_upper) * in_chunk + slot) * 2U);
  const float d = half_bits_to_float(d_bits);
  *y = (bits >> lane_id() & 1U) != 0U ? d : -d;
}
