// Elements of three float types as f32, one rounding to nearest even each way.
#pragma once

#include "backend/cuda/kernels/device.cuh"
#include "backend/gpu/params/gemm_finish.h"

namespace tern {
namespace cuda {

__device__ __forceinline__ float load_element(tern_u64 address, tern_u64 index, tern_u32 type) {
  if (type == kTernF32) return reinterpret_cast<const float*>(address)[index];
  const tern_u16 bits = reinterpret_cast<const tern_u16*>(address)[index];
  if (type == kTernF16) return half_bits_to_float(bits);
  return __uint_as_float(static_cast<tern_u32>(bits) << 16);
}

__device__ __forceinline__ void store_element(tern_u64 address, tern_u64 index, tern_u32 type,
                                              float value) {
  if (type == kTernF32) {
    reinterpret_cast<float*>(address)[index] = value;
    return;
  }
  tern_u16 bits = 0;
  if (type == kTernF16)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  else
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  reinterpret_cast<tern_u16*>(address)[index] = bits;
}

}  // namespace cuda
}  // namespace tern
