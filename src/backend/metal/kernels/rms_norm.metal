// rms_norm: y = x / sqrt(mean(x^2) + eps) * weight over each run of `width` columns.
#include "backend/gpu/params/rowwise.h"
#include "backend/metal/kernels/device.h"

TERN_EXPORT_LAYOUT(rms_norm, TernRmsNormParams, TERN_RMS_NORM_LAYOUT)

// Threadgroups (runs, rows) of a multiple of 32 threads. Statistics in f32: each thread adds its
// columns in ascending order, then a tree; the row alone decides the bits. A run of zeros gives
// zeros, also with eps = 0. y may be x.
kernel void rms_norm(device const uchar* weights [[buffer(0)]],
                     device uchar* arena [[buffer(1)]],
                     device const uchar* block [[buffer(2)]],
                     constant TernRmsNormParams& p [[buffer(3)]],
                     uint2 place [[threadgroup_position_in_grid]],
                     uint2 thread_place [[thread_position_in_threadgroup]],
                     uint2 threads [[threads_per_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint simd [[simdgroup_index_in_threadgroup]]) {
  using namespace tern;
  threadgroup float partial[32];
  // The same for all threads of the group.
  const bool has_work = has_row(block, p.axis, place.y);
  const tern_u64 run = static_cast<tern_u64>(place.x) * p.width;
  const tern_u32 width = has_work ? p.width : 0U;
  device const float* x = input_row(arena, p.x, p.x_row_stride, place.y) + run;
  device float* y = output_row(arena, p.y, p.y_row_stride, place.y) + run;
  device const float* weight = reinterpret_cast<device const float*>(weights + p.weight);
  float sum = 0.0F;
  for (tern_u32 k = thread_place.x; k < width; k += threads.x) sum = fma(x[k], x[k], sum);
  sum = simd_sum(sum);
  if (lane == 0U) partial[simd] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const tern_u32 simds = threads.x / 32U;
  sum = simd_sum(lane < simds ? partial[lane] : 0.0F);
  const float mean = sum / static_cast<float>(p.width) + p.eps;
  const float scale = mean == 0.0F ? 0.0F : 1.0F / sqrt(mean);
  for (tern_u32 k = thread_place.x; k < width; k += threads.x) y[k] = x[k] * scale * weight[k];
}
