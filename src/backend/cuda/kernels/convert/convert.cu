// convert: a batch of matrices from one float type to another, with strides of their own.
#include "backend/cuda/kernels/element.cuh"

TERN_EXPORT_LAYOUT(convert, TernConvertParams, TERN_CONVERT_LAYOUT)

// 256 threads; blocks share the rows of the whole batch. A batch stride of 0 on the target's side
// never comes with a batch above one.
extern "C" __global__ void __launch_bounds__(256)
    convert(const tern_u8*, tern_u8*, const tern_u8*, const TernConvertParams p) {
  using namespace tern::cuda;
  launch_dependents();
  dependency_wait();
  for (tern_u64 row = blockIdx.x; row < p.rows * p.batch; row += gridDim.x) {
    const tern_u64 matrix = row / p.rows;
    const tern_u64 in_matrix = row % p.rows;
    const tern_u64 from = matrix * p.from_batch_stride + in_matrix * p.from_row_stride;
    const tern_u64 to = matrix * p.to_batch_stride + in_matrix * p.to_row_stride;
    for (tern_u64 k = threadIdx.x; k < p.cols; k += 256U)
      store_element(p.to, to + k, p.to_type, load_element(p.from, from + k, p.from_type));
  }
}
