// gemv_q1_g128: y = W x for binary weights in groups of 128 and 12-bit rows, bit-equal to the
// canonical sum (chunks of 512 inputs, groups ascending).
#include "backend/cuda/kernels/gemv_q1_g128/b1_mma.cuh"

TERN_EXPORT_LAYOUT(gemv_q1_g128_b1_mma, TernGemvParams, TERN_GEMV_LAYOUT)
TERN_EXPORT_LAYOUT(gemv_q1_g128_b1_mma_deep, TernGemvParams, TERN_GEMV_LAYOUT)

// grid (blocks, rows), at most 512 threads; shared memory as in gemv_q1_g128_b1. Three tiles ahead
// in 128 registers were fastest for rows of up to 16 chunks (H200; docs/cuda.md).
extern "C" __global__ void __launch_bounds__(512, 1)
    gemv_q1_g128_b1_mma(const tern_u8* weights, tern_u8* arena, const tern_u8* block,
                        const TernGemvParams p) {
  extern __shared__ float sums[];
  tern::cuda::gemv_q1_g128_b1<3>(weights, arena, block, p, sums);
}

// The same with at most 768 threads, so that rows of up to 24 chunks need one pass.
extern "C" __global__ void __launch_bounds__(768, 1)
    gemv_q1_g128_b1_mma_deep(const tern_u8* weights, tern_u8* arena, const tern_u8* block,
                             const TernGemvParams p) {
  extern __shared__ float sums[];
  tern::cuda::gemv_q1_g128_b1<1>(weights, arena, block, p, sums);
}
