// gather_rows: y[i] = x[output_rows[i]].
#include "backend/cuda/kernels/device.cuh"
#include "backend/gpu/params/rowwise.h"

TERN_EXPORT_LAYOUT(gather_rows, TernGatherParams, TERN_GATHER_LAYOUT)

// grid (blocks of 256 columns, output rows), 256 threads. The host has checked the row numbers.
extern "C" __global__ void __launch_bounds__(256)
    gather_rows(const tern_u8*, tern_u8* arena, const tern_u8* block, const TernGatherParams p) {
  using namespace tern::cuda;
  launch_dependents();
  dependency_wait();
  const tern_u32 row = blockIdx.y;
  if (!has_row(block, p.axis, row)) return;
  const tern_u32 k = blockIdx.x * 256U + threadIdx.x;
  if (k >= p.width) return;
  const tern_u32 from = reinterpret_cast<const tern_u32*>(block + p.rows)[row];
  float_row(arena, p.y, p.y_row_stride, row)[k] =
      float_row(static_cast<const tern_u8*>(arena), p.x, p.x_row_stride, from)[k];
}
