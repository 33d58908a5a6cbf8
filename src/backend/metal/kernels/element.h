// Elements of two float types as f32, one rounding to nearest even each way.
#pragma once

#include "backend/gpu/params/gemm_finish.h"
#include "backend/metal/kernels/device.h"

namespace tern {

inline float load_element(device const uchar* base, tern_u64 offset, tern_u64 index,
                          tern_u32 type) {
  if (type == kTernF32) return reinterpret_cast<device const float*>(base + offset)[index];
  return static_cast<float>(reinterpret_cast<device const half*>(base + offset)[index]);
}

inline void store_element(device uchar* base, tern_u64 offset, tern_u64 index, tern_u32 type,
                          float value) {
  if (type == kTernF32)
    reinterpret_cast<device float*>(base + offset)[index] = value;
  else
    reinterpret_cast<device half*>(base + offset)[index] = static_cast<half>(value);
}

}  // namespace tern
