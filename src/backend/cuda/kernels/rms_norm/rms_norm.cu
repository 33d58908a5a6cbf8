// rms_norm: y = x / sqrt(mean(x^2) + eps) * weight over each run of `width` columns.
#include "backend/cuda/kernels/device.cuh"
#include "backend/gpu/params/rowwise.h"

TERN_EXPORT_LAYOUT(rms_norm, TernRmsNormParams, TERN_RMS_NORM_LAYOUT)

// grid (runs, rows), a multiple of 32 up to 1,024 threads. Statistics in f32: each thread adds its
// columns in ascending order, then a fixed tree; the row alone decides the bits. A run of zeros
// gives zeros, also with eps = 0. y may be x.
extern "C" __global__ void __launch_bounds__(1024)
    rms_norm(const tern_u8* weights, tern_u8* arena, const tern_u8* block,
             const TernRmsNormParams p) {
  using namespace tern::cuda;
  __shared__ float partial[32];
  launch_dependents();
  dependency_wait();
  const tern_u32 row = blockIdx.y;
  if (!has_row(block, p.axis, row)) return;
  const tern_u64 run = static_cast<tern_u64>(blockIdx.x) * p.width;
  const float* x = float_row(static_cast<const tern_u8*>(arena), p.x, p.x_row_stride, row) + run;
  float* y = float_row(arena, p.y, p.y_row_stride, row) + run;
  const float* weight = reinterpret_cast<const float*>(weights + p.weight);
  float sum = 0.0F;
  for (tern_u32 k = threadIdx.x; k < p.width; k += blockDim.x) sum = __fmaf_rn(x[k], x[k], sum);
  sum = warp_sum(sum);
  if (lane_id() == 0U) partial[threadIdx.x >> 5] = sum;
  __syncthreads();
  const tern_u32 warps = blockDim.x >> 5;
  sum = warp_sum(lane_id() < warps ? partial[lane_id()] : 0.0F);
  const float mean = sum / static_cast<float>(p.width) + p.eps;
  const float scale = mean == 0.0F ? 0.0F : 1.0F / __fsqrt_rn(mean);
  for (tern_u32 k = threadIdx.x; k < p.width; k += blockDim.x) y[k] = x[k] * scale * weight[k];
}
