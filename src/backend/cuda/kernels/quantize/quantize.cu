// quantize: rows of floats to 12-bit integers as bit planes, with one scale and one sum per 128
// inputs.
#include "backend/cuda/kernels/device.cuh"
#include "backend/gpu/math/quantize.h"
#include "backend/gpu/params/gemv.h"
#include "backend/gpu/params/rowwise.h"

TERN_EXPORT_LAYOUT(quantize_i12, TernQuantizeParams, TERN_QUANTIZE_LAYOUT)

namespace tern {
namespace cuda {

// Writes the planes, the scale and the sum of one group; a warp holds input 32t + lane in q[t].
__device__ __forceinline__ void store_group(tern_u8* record, tern_u64 scales_offset, tern_u32 group,
                                            const tern_i32 (&q)[4], float a) {
  const tern_u32 lane = lane_id();
  tern_u32 low = 0;
  tern_u32 high = 0;
  tern_i32 sum = 0;
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    sum += q[t];
#pragma unroll
    for (int plane = 0; plane < kTernPlanes; ++plane) {
      const tern_u32 bits = __ballot_sync(0xFFFFFFFFU, (q[t] >> plane & 1) != 0);
      if (plane < 8 && lane == static_cast<tern_u32>(8 * (plane % 4) + 4 * (plane / 4) + t))
        low = bits;
      if (plane >= 8 && lane == static_cast<tern_u32>(4 * (plane - 8) + t)) high = bits;
    }
  }
  sum = warp_sum(sum);
  const tern_u32 chunk = group / kTernChunkGroups;
  const tern_u32 slot = group % kTernChunkGroups;
  tern_u32* planes = reinterpret_cast<tern_u32*>(record + chunk * kTernPlaneChunkBytes);
  planes[lane * 4U + slot] = low;
  if (lane < 16U) planes[128U + lane * 4U + slot] = high;
  tern_u8* scales = record + scales_offset + chunk * kTernScaleChunkBytes;
  if (lane == 0U) {
    reinterpret_cast<float*>(scales)[slot] = a;
    reinterpret_cast<tern_i32*>(scales + 16)[slot] = sum;
  }
}

}  // namespace cuda
}  // namespace tern

// grid (blocks of 8 groups, rows), 256 threads: one warp a group. Groups up to a multiple of four
// are written, those beyond the row as zeros.
extern "C" __global__ void __launch_bounds__(256)
    quantize_i12(const tern_u8*, tern_u8* arena, const tern_u8* block, const TernQuantizeParams p) {
  using namespace tern::cuda;
  launch_dependents();
  dependency_wait();
  const tern_u32 row = blockIdx.y;
  const tern_u32 lane = lane_id();
  const tern_u32 group = blockIdx.x * 8U + (threadIdx.x >> 5);
  const tern_u32 groups = (p.width + 511U) / 512U * kTernChunkGroups;
  if (group >= groups || !has_row(block, p.axis, row)) return;
  const float* x = float_row(static_cast<const tern_u8*>(arena), p.x, p.x_row_stride, row);
  float v[4];
  tern_u32 largest = 0;  // magnitudes order as unsigned integers, with Inf and NaN on top
#pragma unroll
  for (tern_u32 t = 0; t < 4U; ++t) {
    const tern_u32 k = group * kTernGroup + t * 32U + lane;
    v[t] = k < p.width ? x[k] : 0.0F;
    const tern_u32 magnitude = __float_as_uint(v[t]) & 0x7FFFFFFFU;
    largest = magnitude > largest ? magnitude : largest;
  }
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) {
    const tern_u32 other = __shfl_xor_sync(0xFFFFFFFFU, largest, step);
    largest = other > largest ? other : largest;
  }
  const float amax = __uint_as_float(largest);
  const bool is_finite = largest < 0x7F800000U;
  const bool is_zero = is_finite && amax < tern::gpu::i12_smallest();
  const float r = is_finite && !is_zero ? tern::gpu::i12_reciprocal(amax) : 0.0F;
  tern_i32 q[4];
#pragma unroll
  for (int t = 0; t < 4; ++t) q[t] = is_finite && !is_zero ? tern::gpu::i12_value(v[t], r) : 0;
  const float a = is_zero     ? 0.0F
                  : is_finite ? tern::gpu::i12_scale(amax)
                              : __uint_as_float(0x7FC00000U);
  store_group(arena + p.records + row * p.record_bytes, p.scales_offset, group, q, a);
}
