// convert: a batch of matrices from one float type to another, with strides of their own.
#include "backend/metal/kernels/element.h"

TERN_EXPORT_LAYOUT(convert, TernConvertParams, TERN_CONVERT_LAYOUT)

// Threadgroups (any number, 1) of 256 threads share the rows of the whole batch. `from` and `to`
// are bytes from the starts of buffers 0 and 1.
kernel void convert(device const uchar* source [[buffer(0)]],
                    device uchar* target [[buffer(1)]],
                    constant TernConvertParams& p [[buffer(3)]],
                    uint2 place [[threadgroup_position_in_grid]],
                    uint2 count [[threadgroups_per_grid]],
                    uint2 thread_place [[thread_position_in_threadgroup]]) {
  using namespace tern;
  for (tern_u64 row = place.x; row < p.rows * p.batch; row += count.x) {
    const tern_u64 matrix = row / p.rows;
    const tern_u64 in_matrix = row % p.rows;
    const tern_u64 from = matrix * p.from_batch_stride + in_matrix * p.from_row_stride;
    const tern_u64 to = matrix * p.to_batch_stride + in_matrix * p.to_row_stride;
    for (tern_u64 k = thread_place.x; k < p.cols; k += 256U)
      store_element(target, p.to, to + k, p.to_type,
                    load_element(source, p.from, from + k, p.from_type));
  }
}
