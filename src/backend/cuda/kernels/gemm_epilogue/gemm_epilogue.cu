// gemm_epilogue: D = activation(source + beta C + bias) in f32, rounded once to D's type.
#include "backend/cuda/kernels/element.cuh"

TERN_EXPORT_LAYOUT(gemm_epilogue, TernEpilogueParams, TERN_EPILOGUE_LAYOUT)

namespace tern {
namespace cuda {

__device__ __forceinline__ float activate(float x, tern_u32 activation) {
  switch (activation) {
    case kTernRelu:
      return x < 0.0F ? 0.0F : x;  // NaN stays NaN
    case kTernSilu:
      return x / (1.0F + expf(-x));
    case kTernGeluErf:
      return 0.5F * x * (1.0F + erff(x * 0.70710678118654752F));
    case kTernGeluTanh:
      return 0.5F * x * (1.0F + tanhf(0.79788456080286536F * (x + 0.044715F * x * x * x)));
    default:
      return x;
  }
}

}  // namespace cuda
}  // namespace tern

// 256 threads; blocks share the rows of the whole batch. D may be the source or C, element by
// element.
extern "C" __global__ void __launch_bounds__(256)
    gemm_epilogue(const tern_u8*, tern_u8*, const tern_u8*, const TernEpilogueParams p) {
  using namespace tern::cuda;
  launch_dependents();
  dependency_wait();
  for (tern_u64 row = blockIdx.x; row < p.rows * p.batch; row += gridDim.x) {
    const tern_u64 matrix = row / p.rows;
    const tern_u64 in_matrix = row % p.rows;
    for (tern_u64 k = threadIdx.x; k < p.cols; k += 256U) {
      float x = 0.0F;
      if (p.source != 0U)
        x = load_element(p.source,
                         matrix * p.source_batch_stride + in_matrix * p.source_row_stride + k,
                         kTernF32);
      if (p.c != 0U)
        x = __fmaf_rn(p.beta,
                      load_element(p.c, matrix * p.c_batch_stride + in_matrix * p.c_row_stride + k,
                                   p.c_type),
                      x);
      if (p.bias != 0U) x += load_element(p.bias, k, p.bias_type);
      store_element(p.d, matrix * p.d_batch_stride + in_matrix * p.d_row_stride + k, p.d_type,
                    activate(x, p.activation));
    }
  }
}
