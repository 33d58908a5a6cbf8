// Elements of three float types as f32, one rounding to nearest even each way. bf16 by its bits, so
// that GPUs and compilers without that type take it.
#pragma once

#include "backend/gpu/params/gemm_finish.h"
#include "backend/metal/kernels/device.h"

namespace tern {

inline float load_element(device const uchar* base, tern_u64 offset, tern_u64 index,
                          tern_u32 type) {
  if (type == kTernF32) return reinterpret_cast<device const float*>(base + offset)[index];
  if (type == kTernF16)
    return static_cast<float>(reinterpret_cast<device const half*>(base + offset)[index]);
  const tern_u32 bits = reinterpret_cast<device const ushort*>(base + offset)[index];
  return as_type<float>(bits << 16);
}

// NaN stays NaN: its top bits are kept and one is set that no rounding can clear.
inline ushort bf16_bits(float value) {
  const tern_u32 bits = as_type<uint>(value);
  const tern_u32 rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
  return static_cast<ushort>(magnitude(value) > 0x7F800000U ? bits >> 16 | 0x40U : rounded);
}

inline void store_element(device uchar* base, tern_u64 offset, tern_u64 index, tern_u32 type,
                          float value) {
  if (type == kTernF32)
    reinterpret_cast<device float*>(base + offset)[index] = value;
  else if (type == kTernF16)
    reinterpret_cast<device half*>(base + offset)[index] = static_cast<half>(value);
  else
    reinterpret_cast<device ushort*>(base + offset)[index] = bf16_bits(value);
}

}  // namespace tern
