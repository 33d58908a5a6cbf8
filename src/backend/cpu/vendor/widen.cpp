// The portable conversions, and the choice.
#include "backend/cpu/vendor/widen.h"

#include "base/half.h"

namespace tern::cpu {

namespace {

void widen_half_portable(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = half_to_float(from[i]);
}

void widen_bf16_portable(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = bf16_to_float(from[i]);
}

}  // namespace

Widen widen_functions([[maybe_unused]] CpuFeatures features) {
#if defined(__x86_64__)
  if (features.contains({CpuFeature::kAvx2, CpuFeature::kF16c}))
    return {widen_half_avx2, widen_bf16_avx2};
#endif
  return {widen_half_portable, widen_bf16_portable};
}

}  // namespace tern::cpu
