// Conversion of rows of 16-bit floats to f32, exactly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"

namespace tern::cpu {

// to[i] = float(from[i]) for i in [0, count); from is aligned to its element. Exact, NaN payloads
// and subnormals included, whatever the modes of the floating-point unit.
using WidenFn = void (*)(const std::uint16_t* from, float* to, std::size_t count);

struct Widen {
  WidenFn from_half;
  WidenFn from_bf16;
};
// The fastest that these features allow.
[[nodiscard]] Widen widen_functions(CpuFeatures features);

void widen_half_avx2(const std::uint16_t* from, float* to, std::size_t count);  // needs F16C
void widen_bf16_avx2(const std::uint16_t* from, float* to, std::size_t count);

}  // namespace tern::cpu
