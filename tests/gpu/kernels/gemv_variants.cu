// Variants of gemv_q1_g128 that the benchmark compares: tiles on their way, warps, blocks a core.
#include "backend/cuda/kernels/gemv_q1_g128/b1_mma.cuh"

#define TERN_VARIANT(name, ahead, threads, blocks)                                                 \
  extern "C" __global__ void __launch_bounds__(threads, blocks)                                    \
      name(const tern_u8* weights, tern_u8* arena, const tern_u8* block, const TernGemvParams p) { \
    extern __shared__ float sums[];                                                                \
    tern::cuda::gemv_q1_g128_b1<ahead>(weights, arena, block, p, sums);                            \
  }

TERN_VARIANT(gemv_a2_t512_b1, 2, 512, 1)
TERN_VARIANT(gemv_a3_t512_b1, 3, 512, 1)
TERN_VARIANT(gemv_a1_t768_b1, 1, 768, 1)
TERN_VARIANT(gemv_a2_t768_b1, 2, 768, 1)
TERN_VARIANT(gemv_a2_t256_b3, 2, 256, 3)
