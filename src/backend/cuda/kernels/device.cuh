// What the CUDA kernels share: wide loads, warp sums, half to float, and where a step's rows are.
#pragma once

#include "backend/gpu/math/types.h"
#include "backend/gpu/params/rows.h"

namespace tern {
namespace cuda {

// Bytes that are read once: past the first-level cache.
__device__ __forceinline__ uint4 load_stream(const tern_u8* p) {
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3},[%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(p));
  return v;
}
__device__ __forceinline__ uint2 load_stream_8(const tern_u8* p) {
  uint2 v;
  asm("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1},[%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}
// Bytes that an earlier kernel wrote. volatile: not to be moved before dependency_wait().
__device__ __forceinline__ uint4 load_shared_input(const tern_u8* p) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3},[%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

__device__ __forceinline__ float half_bits_to_float(tern_u16 bits) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
  return f;
}

__device__ __forceinline__ tern_u32 lane_id() { return threadIdx.x & 31U; }

__device__ __forceinline__ tern_i32 warp_sum(tern_i32 v) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) v += __shfl_xor_sync(0xFFFFFFFFU, v, step);
  return v;
}
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) v += __shfl_xor_sync(0xFFFFFFFFU, v, step);
  return v;
}

// Contract of launches that may start before their predecessor ends: before dependency_wait() a
// kernel touches parameters and weights only; every kernel waits, so that completion carries over.
__device__ __forceinline__ void dependency_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void launch_dependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Whether row `row` of the axis is part of this step.
__device__ __forceinline__ bool has_row(const tern_u8* block, tern_u32 axis, tern_u32 row) {
  if (axis == kTernAllRows) return true;
  const TernBatchCounts* counts = reinterpret_cast<const TernBatchCounts*>(block);
  return row < (axis == kTernRows ? counts->rows : counts->output_rows);
}

__device__ __forceinline__ const float* float_row(const tern_u8* arena, tern_u64 offset,
                                                  tern_u64 stride, tern_u32 row) {
  return reinterpret_cast<const float*>(arena + offset) + row * stride;
}
__device__ __forceinline__ float* float_row(tern_u8* arena, tern_u64 offset, tern_u64 stride,
                                            tern_u32 row) {
  return reinterpret_cast<float*>(arena + offset) + row * stride;
}

}  // namespace cuda
}  // namespace tern
