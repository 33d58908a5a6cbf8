// gather_rows: y[i] = x[output_rows[i]].
#include "backend/gpu/params/rowwise.h"
#include "backend/metal/kernels/device.h"

TERN_EXPORT_LAYOUT(gather_rows, TernGatherParams, TERN_GATHER_LAYOUT)

// Threadgroups (blocks of 256 columns, output rows) of 256 threads. The host has checked the row
// numbers.
kernel void gather_rows(device uchar* arena [[buffer(1)]],
                        device const uchar* block [[buffer(2)]],
                        constant TernGatherParams& p [[buffer(3)]],
                        uint2 place [[threadgroup_position_in_grid]],
                        uint2 thread_place [[thread_position_in_threadgroup]]) {
  using namespace tern;
  const tern_u32 k = place.x * 256U + thread_place.x;
  if (k < p.width && has_row(block, p.axis, place.y)) {
    const tern_u32 from = reinterpret_cast<device const tern_u32*>(block + p.rows)[place.y];
    output_row(arena, p.y, p.y_row_stride, place.y)[k] =
        input_row(arena, p.x, p.x_row_stride, from)[k];
  }
}
