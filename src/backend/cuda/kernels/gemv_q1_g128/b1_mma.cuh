// gemv_q1_g128 on binary matrix instructions: 16 weight rows times the bit planes of one row.
#pragma once

#include "backend/cuda/kernels/device.cuh"
#include "backend/gpu/math/packed.h"
#include "backend/gpu/params/gemv.h"

namespace tern {
namespace cuda {

struct PlaneProduct {
  tern_i32 c0, c1, c2, c3;  // rows g, g and g + 8, g + 8; planes 2t, 2t + 1
};

// 16 rows x 128 bits times 128 bits x 8 planes: counts of bits set in both.
__device__ __forceinline__ PlaneProduct plane_product(tern_u32 row, tern_u32 row8,
                                                      tern_u32 planes) {
  PlaneProduct r;
  asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3},{%4,%5},{%6},"
      "{%7,%7,%7,%7};"
      : "=r"(r.c0), "=r"(r.c1), "=r"(r.c2), "=r"(r.c3)
      : "r"(row), "r"(row8), "r"(planes), "r"(0));
  return r;
}

// A chunk of one tile: four groups of bits and their scales, as one lane holds them.
struct TileChunk {
  uint4 low;     // groups 0 and 1: {row g, row g + 8} each
  uint4 high;    // groups 2 and 3
  uint4 scales;  // {row g, row g + 8} as two halves, per group
};

// A chunk of the activations, as one lane holds it.
struct PlaneChunk {
  uint4 low;   // planes 0..7, per group
  uint4 high;  // planes 8..11; zero in the lanes of columns 4..7
  uint4 a;     // scales, as bits
  uint4 sum;   // sums of q
};

struct LaneWeights {
  tern_u32 shift;   // 4^t
  tern_i32 odd;     // weight of planes 9 and 11 against their even neighbour
  tern_i32 factor;  // weight of planes 8 and 10
  tern_u32 is_odd;
  __device__ explicit LaneWeights(tern_u32 lane) {
    const tern_u32 t = lane & 3U;
    shift = 2U * t;
    odd = t == 1U ? -2 : 2;  // plane 11 is negative
    factor = t == 1U ? 1024 : 256;
    is_odd = t & 1U;
  }
};

__device__ __forceinline__ TileChunk load_tile_chunk(const tern_u8* p, tern_u32 lane) {
  TileChunk c;
  c.low = load_stream(p + lane * 16U);
  c.high = load_stream(p + 512U + lane * 16U);
  c.scales = load_stream(p + 1024U + (lane >> 2) * 16U);
  return c;
}

// The last chunk of a row with fewer than four groups: missing ones become zeros.
__device__ __forceinline__ TileChunk load_short_chunk(const tern_u8* p, tern_u32 lane,
                                                      tern_u32 groups) {
  tern_u32 bits[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  tern_u32 scales[4] = {0, 0, 0, 0};
#pragma unroll
  for (tern_u32 j = 0; j < 4U; ++j) {
    if (j >= groups) break;
    const bool is_odd_last = j + 1U == groups && (groups & 1U) != 0U;
    const tern_u8* at = p + (j >> 1) * 512U +
                        (is_odd_last ? lane * 8U : lane * 16U + (j & 1U) * 8U);
    bits[2U * j] = reinterpret_cast<const tern_u32*>(at)[0];
    bits[2U * j + 1U] = reinterpret_cast<const tern_u32*>(at)[1];
    scales[j] =
        reinterpret_cast<const tern_u32*>(p + groups * 256U)[(lane >> 2) * groups + j];
  }
  TileChunk c;
  c.low = make_uint4(bits[0], bits[1], bits[2], bits[3]);
  c.high = make_uint4(bits[4], bits[5], bits[6], bits[7]);
  c.scales = make_uint4(scales[0], scales[1], scales[2], scales[3]);
  return c;
}

__device__ __forceinline__ PlaneChunk load_plane_chunk(const tern_u8* record,
                                                       tern_u64 scales_offset, tern_u32 chunk,
                                                       tern_u32 lane) {
  PlaneChunk c;
  const tern_u8* planes = record + chunk * kTernPlaneChunkBytes;
  c.low = load_shared_input(planes + lane * 16U);
  c.high = make_uint4(0, 0, 0, 0);
  if (lane < 16U) c.high = load_shared_input(planes + 512U + lane * 16U);
  const tern_u8* scales = record + scales_offset + chunk * kTernScaleChunkBytes;
  c.a = load_shared_input(scales);
  c.sum = load_shared_input(scales + 16U);
  return c;
}

// One group: even lanes end with row g of their quad, odd lanes with row g + 8.
__device__ __forceinline__ float fold_group(tern_u32 row, tern_u32 row8, tern_u32 low,
                                            tern_u32 high, tern_u32 a, tern_u32 sum,
                                            tern_u32 scales, const LaneWeights& w, float acc) {
  const PlaneProduct c = plane_product(row, row8, low);
  const PlaneProduct e = plane_product(row, row8, high);
  const tern_i32 v = ((c.c0 + 2 * c.c1) << w.shift) + (e.c0 + w.odd * e.c1) * w.factor;
  const tern_i32 v8 = ((c.c2 + 2 * c.c3) << w.shift) + (e.c2 + w.odd * e.c3) * w.factor;
  const tern_i32 sent = w.is_odd != 0U ? v : v8;
  tern_i32 kept = w.is_odd != 0U ? v8 : v;
  kept += __shfl_xor_sync(0xFFFFFFFFU, sent, 1);
  kept += __shfl_xor_sync(0xFFFFFFFFU, kept, 2);
  const float integer =
      static_cast<float>(gpu::binary_integer(kept, static_cast<tern_i32>(sum)));
  const float d = half_bits_to_float(static_cast<tern_u16>(scales >> (w.is_odd * 16U)));
  return __fmaf_rn(integer, __fmul_rn(d, __uint_as_float(a)), acc);
}

__device__ __forceinline__ float fold_chunk(const TileChunk& t, const PlaneChunk& x,
                                            const LaneWeights& w, tern_u32 groups) {
  float acc = 0.0F;
  acc = fold_group(t.low.x, t.low.y, x.low.x, x.high.x, x.a.x, x.sum.x, t.scales.x, w, acc);
  if (groups > 1U)
    acc = fold_group(t.low.z, t.low.w, x.low.y, x.high.y, x.a.y, x.sum.y, t.scales.y, w, acc);
  if (groups > 2U)
    acc = fold_group(t.high.x, t.high.y, x.low.z, x.high.z, x.a.z, x.sum.z, t.scales.z, w, acc);
  if (groups > 3U)
    acc = fold_group(t.high.z, t.high.w, x.low.w, x.high.w, x.a.w, x.sum.w, t.scales.w, w, acc);
  return acc;
}

// The tiles [begin, end) of a block, split evenly: no block has more than one tile above another.
struct TileRange {
  tern_u32 begin, count;
};
__device__ __forceinline__ TileRange tiles_of_block(tern_u32 outputs) {
  const tern_u64 tiles = (outputs + kTernTileRows - 1U) / kTernTileRows;
  const tern_u32 begin = static_cast<tern_u32>(tiles * blockIdx.x / gridDim.x);
  const tern_u32 end = static_cast<tern_u32>(tiles * (blockIdx.x + 1U) / gridDim.x);
  return {begin, end - begin};
}

// Adds the chunk sums of each output in ascending order, then bias, then residual.
__device__ __forceinline__ void finish_tiles(const float* sums, tern_u32 chunks,
                                             const TileRange& range, const tern_u8* weights,
                                             tern_u8* arena, const TernGemvParams& p,
                                             tern_u32 row) {
  for (tern_u32 i = threadIdx.x; i < range.count * kTernTileRows; i += blockDim.x) {
    const tern_u32 output = range.begin * kTernTileRows + i;
    if (output >= p.outputs) return;
    const float* mine =
        sums + (i / kTernTileRows) * chunks * kTernTileRows + i % kTernTileRows;
    float y = mine[0];
    for (tern_u32 c = 1; c < chunks; ++c) y = __fadd_rn(y, mine[c * kTernTileRows]);
    if ((p.flags & kTernGemvBias) != 0U)
      y = __fadd_rn(y, reinterpret_cast<const float*>(weights + p.bias)[output]);
    if ((p.flags & kTernGemvResidual) != 0U)
      y = __fadd_rn(float_row(arena, p.residual, p.residual_row_stride, row)[output], y);
    float_row(arena, p.y, p.y_row_stride, row)[output] = y;
  }
}

// A warp keeps one chunk of the row and walks over its tiles; kAhead tiles of weights are on
// their way while one is multiplied. With more chunks than warps the walk is repeated.
// Shared memory: [tiles of the block][chunks][16] floats.
template <int kAhead>
__device__ __forceinline__ void gemv_q1_g128_b1(const tern_u8* weights, tern_u8* arena,
                                                const tern_u8* block, const TernGemvParams& p,
                                                float* sums) {
  const tern_u32 lane = lane_id();
  const tern_u32 warp = threadIdx.x >> 5;
  const tern_u32 warps = blockDim.x >> 5;
  const tern_u32 chunks = (p.groups + kTernChunkGroups - 1U) / kTernChunkGroups;
  const TileRange range = tiles_of_block(p.outputs);
  const tern_u32 step = chunks <= warps ? warps / chunks : 1U;
  const tern_u32 first = chunks <= warps ? warp / chunks : 0U;
  const tern_u64 tile_bytes = static_cast<tern_u64>(p.groups) * kTernTileGroupBytes;
  const tern_u8* base = weights + p.weights + range.begin * tile_bytes;
  const LaneWeights lane_weights(lane);
  const tern_u32 row = blockIdx.y;
  launch_dependents();
  bool is_waiting = true;
  for (tern_u32 chunk = chunks <= warps ? warp % chunks : warp; chunk < chunks && first < step;
       chunk += chunks <= warps ? chunks : warps) {
    const tern_u32 left = p.groups - chunk * kTernChunkGroups;
    const tern_u8* at = base + chunk * (kTernChunkGroups * kTernTileGroupBytes);
    if (left >= kTernChunkGroups) {
      TileChunk ahead[kAhead];
#pragma unroll
      for (tern_u32 i = 0; i < kAhead; ++i)
        if (first + i * step < range.count)
          ahead[i] = load_tile_chunk(at + (first + i * step) * tile_bytes, lane);
      if (is_waiting) {
        dependency_wait();
        if (!has_row(block, p.axis, row)) return;
        is_waiting = false;
      }
      const tern_u8* record = arena + p.records + row * p.record_bytes;
      const PlaneChunk x = load_plane_chunk(record, p.scales_offset, chunk, lane);
      for (tern_u32 tile = first; tile < range.count; tile += step) {
        const TileChunk now = ahead[0];
#pragma unroll
        for (tern_u32 i = 0; i + 1U < kAhead; ++i) ahead[i] = ahead[i + 1U];
        const tern_u32 next = tile + kAhead * step;
        if (next < range.count)
          ahead[kAhead - 1] = load_tile_chunk(at + next * tile_bytes, lane);
        const float acc = fold_chunk(now, x, lane_weights, kTernChunkGroups);
        if ((lane & 2U) == 0U)
          sums[(tile * chunks + chunk) * kTernTileRows + (lane >> 2) + 8U * (lane & 1U)] = acc;
      }
    } else {
      if (is_waiting) {
        dependency_wait();
        if (!has_row(block, p.axis, row)) return;
        is_waiting = false;
      }
      const tern_u8* record = arena + p.records + row * p.record_bytes;
      const PlaneChunk x = load_plane_chunk(record, p.scales_offset, chunk, lane);
      for (tern_u32 tile = first; tile < range.count; tile += step) {
        const float acc =
            fold_chunk(load_short_chunk(at + tile * tile_bytes, lane, left), x, lane_weights, left);
        if ((lane & 2U) == 0U)
          sums[(tile * chunks + chunk) * kTernTileRows + (lane >> 2) + 8U * (lane & 1U)] = acc;
      }
    }
  }
  if (is_waiting) {
    dependency_wait();
    if (!has_row(block, p.axis, row)) return;
  }
  __syncthreads();
  finish_tiles(sums, chunks, range, weights, arena, p, row);
}

}  // namespace cuda
}  // namespace tern
