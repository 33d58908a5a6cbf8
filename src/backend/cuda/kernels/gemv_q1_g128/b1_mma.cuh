// gemv_q1_g128 on binary matrix instructions: 16 weight rows times the bit planes of one row.
#pragma once

#include "backend/cuda/kernels/device.cuh"
#include "backend/gpu/math/packed.h"
#include "backend/gpu/params/gemv.h"

namespace tern {
namespace cuda {

struct PlaneProduct {
  tern_i32 c0, c1, c2, c3;  // rows g, g and g + 8, g + 8; columns 2t, 2t + 1
};

// 16 rows x 128 bits times 128 bits x 8 columns: counts of bits set in both.
__device__ __forceinline__ PlaneProduct plane_product(tern_u32 row, tern_u32 row8,
                                                      tern_u32 columns) {
  PlaneProduct r;
  asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3},{%4,%5},{%6},"
      "{%7,%7,%7,%7};"
      : "=r"(r.c0), "=r"(r.c1), "=r"(r.c2), "=r"(r.c3)
      : "r"(row), "r"(row8), "r"(columns), "r"(0));
  return r;
}

// A chunk of one tile: four groups of bits and their scales, as one lane holds them.
struct TileChunk {
  uint4 low;     // groups 0 and 1: {row g, row g + 8} each
  uint4 high;    // groups 2 and 3
  uint2 scales;  // four halves of the row that this lane ends with
};

// A chunk of the activations, as one lane holds it.
struct PlaneChunk {
  uint4 low;   // planes 0 to 7, per group
  uint4 high;  // planes 8 to 11 in the even columns; zero in the odd ones
  uint4 a;     // scales, as bits
  uint4 sum;   // sums of q
};

// Lane 4g + t has columns 2t and 2t + 1: planes t and t + 4, and in the second product plane t + 8.
// Weights are doubled: codes are -1 and +1.
struct LaneWeights {
  tern_i32 low, middle, high;
  bool is_odd;
  __device__ explicit LaneWeights(tern_u32 lane) {
    const tern_i32 t = static_cast<tern_i32>(lane & 3U);
    low = 2 * gpu::plane_weight(t);
    middle = 2 * gpu::plane_weight(t + 4);
    high = 2 * gpu::plane_weight(t + 8);
    is_odd = (lane & 1U) != 0U;
  }
};

// bits: where this lane's 16 bytes of the chunk start; scales: its 8 bytes.
__device__ __forceinline__ TileChunk load_tile_chunk(const tern_u8* bits, const tern_u8* scales) {
  TileChunk c;
  c.low = load_stream(bits);
  c.high = load_stream(bits + 512);
  c.scales = load_stream_8(scales);
  return c;
}
__device__ __forceinline__ tern_u32 scale_row(tern_u32 lane) {
  return (lane >> 2) * 2U + (lane & 1U);
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
    const tern_u8* at =
        p + (j >> 1) * 512U + (is_odd_last ? lane * 8U : lane * 16U + (j & 1U) * 8U);
    bits[2U * j] = reinterpret_cast<const tern_u32*>(at)[0];
    bits[2U * j + 1U] = reinterpret_cast<const tern_u32*>(at)[1];
    scales[j] = reinterpret_cast<const tern_u16*>(p + groups * 256U)[scale_row(lane) * groups + j];
  }
  TileChunk c;
  c.low = make_uint4(bits[0], bits[1], bits[2], bits[3]);
  c.high = make_uint4(bits[4], bits[5], bits[6], bits[7]);
  c.scales = make_uint2(scales[0] | scales[1] << 16, scales[2] | scales[3] << 16);
  return c;
}

__device__ __forceinline__ PlaneChunk load_plane_chunk(const tern_u8* record,
                                                       tern_u64 scales_offset, tern_u32 chunk,
                                                       tern_u32 lane) {
  PlaneChunk c;
  const tern_u8* planes = record + chunk * kTernPlaneChunkBytes;
  c.low = load_shared_input(planes + lane * 16U);
  c.high = make_uint4(0, 0, 0, 0);
  if ((lane & 4U) == 0U)
    c.high = load_shared_input(planes + 512U + ((lane >> 3) * 4U + (lane & 3U)) * 16U);
  const tern_u8* scales = record + scales_offset + chunk * kTernScaleChunkBytes;
  c.a = load_shared_input(scales);
  c.sum = load_shared_input(scales + 16U);
  return c;
}

// One group: even lanes end with row g of their quad, odd lanes with row g + 8.
__device__ __forceinline__ float fold_group(tern_u32 row, tern_u32 row8, tern_u32 low,
                                            tern_u32 high, tern_u32 a, tern_u32 sum, tern_u32 d,
                                            const LaneWeights& w, float acc) {
  const PlaneProduct c = plane_product(row, row8, low);
  const PlaneProduct e = plane_product(row, row8, high);
  const tern_i32 v = c.c0 * w.low + (c.c1 * w.middle + e.c0 * w.high);
  const tern_i32 v8 = c.c2 * w.low + (c.c3 * w.middle + e.c2 * w.high);
  tern_i32 kept = w.is_odd ? v8 : v;
  kept += __shfl_xor_sync(0xFFFFFFFFU, w.is_odd ? v : v8, 1);
  kept += __shfl_xor_sync(0xFFFFFFFFU, kept, 2);
  const float integer = static_cast<float>(gpu::binary_integer(kept, static_cast<tern_i32>(sum)));
  const float scale = half_bits_to_float(static_cast<tern_u16>(d));
  return __fmaf_rn(integer, __fmul_rn(scale, __uint_as_float(a)), acc);
}

__device__ __forceinline__ float fold_chunk(const TileChunk& t, const PlaneChunk& x,
                                            const LaneWeights& w, tern_u32 groups) {
  float acc = 0.0F;
  acc =
      fold_group(t.low.x, t.low.y, x.low.x, x.high.x, x.a.x, x.sum.x, t.scales.x & 0xFFFFU, w, acc);
  if (groups > 1U)
    acc = fold_group(t.low.z, t.low.w, x.low.y, x.high.y, x.a.y, x.sum.y, t.scales.x >> 16, w, acc);
  if (groups > 2U)
    acc = fold_group(t.high.x, t.high.y, x.low.z, x.high.z, x.a.z, x.sum.z, t.scales.y & 0xFFFFU, w,
                     acc);
  if (groups > 3U)
    acc =
        fold_group(t.high.z, t.high.w, x.low.w, x.high.w, x.a.w, x.sum.w, t.scales.y >> 16, w, acc);
  return acc;
}

// The tiles [begin, end) of a block, split evenly: no block has more than one tile above another.
struct TileRange {
  tern_u32 begin, count;
};
__device__ __forceinline__ TileRange tiles_of_block(tern_u32 outputs) {
  const tern_u32 tiles = (outputs + kTernTileRows - 1U) / kTernTileRows;
  const tern_u32 even = tiles / gridDim.x;
  const tern_u32 more = tiles % gridDim.x;  // blocks with one tile more
  const tern_u32 before = blockIdx.x < more ? blockIdx.x : more;
  return {blockIdx.x * even + before, even + (blockIdx.x < more ? 1U : 0U)};
}

// Adds the chunk sums of each output in ascending order, then bias, then residual.
__device__ __forceinline__ void finish_tiles(const float* sums, tern_u32 chunks,
                                             const TileRange& range, const tern_u8* weights,
                                             tern_u8* arena, const TernGemvParams& p,
                                             tern_u32 row) {
  for (tern_u32 i = threadIdx.x; i < range.count * kTernTileRows; i += blockDim.x) {
    const tern_u32 output = range.begin * kTernTileRows + i;
    if (output >= p.outputs) return;
    const float* mine = sums + (i / kTernTileRows) * chunks * kTernTileRows + i % kTernTileRows;
    float y = mine[0];
#pragma unroll 4
    for (tern_u32 c = 1; c < chunks; ++c) y = __fadd_rn(y, mine[c * kTernTileRows]);
    if ((p.flags & kTernGemvBias) != 0U)
      y = __fadd_rn(y, reinterpret_cast<const float*>(weights + p.bias)[output]);
    if ((p.flags & kTernGemvResidual) != 0U)
      y = __fadd_rn(float_row(arena, p.residual, p.residual_row_stride, row)[output], y);
    float_row(arena, p.y, p.y_row_stride, row)[output] = y;
  }
}

// One warp's walk over its tiles with one chunk of the row: kAhead tiles of weights are on their
// way. The buffers are named by unrolling, so that none is copied.
template <int kAhead>
struct TileWalk {
  TileChunk ahead[kAhead];
  const tern_u8* bits;
  const tern_u8* scales;
  tern_u64 step_bytes;

  __device__ __forceinline__ void start(const tern_u8* chunk, tern_u32 lane, tern_u64 step,
                                        tern_u32 tiles) {
    bits = chunk + lane * 16U;
    scales = chunk + 1024U + scale_row(lane) * 8U;
    step_bytes = step;
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (static_cast<tern_u32>(i) < tiles) ahead[i] = load_tile_chunk(bits, scales);
      bits += step_bytes;
      scales += step_bytes;
    }
  }
  // sums: where this lane's sum of the first tile goes; sum_step floats further for each next one.
  __device__ __forceinline__ void run(const PlaneChunk& x, const LaneWeights& w, tern_u32 tiles,
                                      float* sums, tern_u32 sum_step, bool is_writer) {
    while (true) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (tiles == 0U) return;
        const float acc = fold_chunk(ahead[i], x, w, kTernChunkGroups);
        if (tiles > static_cast<tern_u32>(kAhead)) ahead[i] = load_tile_chunk(bits, scales);
        bits += step_bytes;
        scales += step_bytes;
        if (is_writer) *sums = acc;
        sums += sum_step;
        --tiles;
      }
    }
  }
};

// A warp keeps one chunk of the row and walks over its tiles; with more chunks than warps the walk
// is repeated. Shared memory: [tiles of the block][chunks][16] floats.
template <int kAhead>
__device__ __forceinline__ void gemv_q1_g128_b1(const tern_u8* weights, tern_u8* arena,
                                                const tern_u8* block, const TernGemvParams& p,
                                                float* sums) {
  const tern_u32 lane = lane_id();
  const tern_u32 warp = threadIdx.x >> 5;
  const tern_u32 warps = blockDim.x >> 5;
  const tern_u32 chunks = (p.groups + kTernChunkGroups - 1U) / kTernChunkGroups;
  const TileRange range = tiles_of_block(p.outputs);
  // Tiles side by side: this warp's are first, first + step, ...
  const tern_u32 step = chunks <= warps ? warps / chunks : 1U;
  const tern_u32 first = chunks <= warps ? warp / chunks : 0U;
  const tern_u32 stride = chunks <= warps ? chunks : warps;
  tern_u32 chunk = warp - first * stride;
  const tern_u32 tiles =
      first < step && first < range.count ? (range.count - first + step - 1U) / step : 0U;
  const tern_u64 tile_bytes = static_cast<tern_u64>(p.groups) * kTernTileGroupBytes;
  const tern_u8* base = weights + p.weights + (range.begin + first) * tile_bytes;
  constexpr tern_u32 kChunkBytes = kTernChunkGroups * kTernTileGroupBytes;
  const LaneWeights lane_weights(lane);
  const tern_u32 row = blockIdx.y;
  const tern_u8* record = arena + p.records + row * p.record_bytes;
  const tern_u32 own_sum = (lane >> 2) + 8U * (lane & 1U);
  const bool is_writer = (lane & 2U) == 0U;
  launch_dependents();
  TileWalk<kAhead> walk;
  bool is_full = (chunk + 1U) * kTernChunkGroups <= p.groups;
  // Weights depend on nothing: they are asked for before the predecessor has ended.
  if (is_full && chunk < chunks)
    walk.start(base + chunk * kChunkBytes, lane, step * tile_bytes, tiles);
  dependency_wait();
  const bool is_there = has_row(block, p.axis, row);
  while (chunk < chunks && tiles > 0U) {
    const PlaneChunk x = load_plane_chunk(record, p.scales_offset, chunk, lane);
    if (!is_there) return;
    float* const out = sums + (first * chunks + chunk) * kTernTileRows + own_sum;
    const tern_u32 sum_step = step * chunks * kTernTileRows;
    if (is_full) {
      walk.run(x, lane_weights, tiles, out, sum_step, is_writer);
    } else {
      const tern_u32 left = p.groups - chunk * kTernChunkGroups;
      for (tern_u32 i = 0; i < tiles; ++i) {
        const tern_u8* at = base + chunk * kChunkBytes + i * step * tile_bytes;
        const float acc = fold_chunk(load_short_chunk(at, lane, left), x, lane_weights, left);
        if (is_writer) out[i * sum_step] = acc;
      }
    }
    chunk += stride;
    if (chunks <= warps) break;
    is_full = (chunk + 1U) * kTernChunkGroups <= p.groups;
    if (is_full && chunk < chunks)
      walk.start(base + chunk * kChunkBytes, lane, step * tile_bytes, tiles);
  }
  if (!is_there) return;
  __syncthreads();
  finish_tiles(sums, chunks, range, weights, arena, p, row);
}

}  // namespace cuda
}  // namespace tern
