// What instruction sets the processor offers. A value with a default, never consulted inside a
// kernel.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace tern {

enum class CpuFeature : std::uint8_t {
  kAvx2,
  kFma,
  kF16c,
  kAvx512f,
  kAvx512bw,
  kAvx512dq,
  kAvx512vl,
  kAvx512vnni,
  kAvx512vbmi,
  kAvxVnni,
  kNeon,
  kDotprod,
};

// A set of features: CpuFeatures have; have.contains({CpuFeature::kAvx2, CpuFeature::kFma}).
class CpuFeatures {
 public:
  constexpr CpuFeatures() = default;
  constexpr CpuFeatures(std::initializer_list<CpuFeature> features) {
    for (CpuFeature f : features) mask_ |= std::uint32_t{1} << static_cast<std::uint32_t>(f);
  }
  [[nodiscard]] constexpr bool contains(CpuFeatures needed) const {
    return (mask_ & needed.mask_) == needed.mask_;
  }
  [[nodiscard]] constexpr CpuFeatures without(CpuFeatures other) const {
    CpuFeatures result;
    result.mask_ = mask_ & ~other.mask_;
    return result;
  }
  [[nodiscard]] constexpr CpuFeatures with(CpuFeatures other) const {
    CpuFeatures result;
    result.mask_ = mask_ | other.mask_;
    return result;
  }
  constexpr bool operator==(const CpuFeatures&) const = default;

 private:
  std::uint32_t mask_ = 0;
};

// Probed once (the one allowed piece of constant process state of this kind).
[[nodiscard]] CpuFeatures cpu_features();
// "AVX2 FMA F16C ..." for people.
[[nodiscard]] std::string to_string(CpuFeatures features);

}  // namespace tern
