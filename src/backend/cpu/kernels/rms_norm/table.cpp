// The variants of rms_norm, fastest first.
#include <array>

#include "backend/cpu/kernels/rms_norm/kernels.h"

namespace tern::cpu {
namespace {

constexpr std::array kVariants = {
#if defined(__x86_64__)
    RmsNormVariant{"avx2", {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c}, rms_norm_avx2},
#endif
    RmsNormVariant{"reference", {}, rms_norm_reference},
};

}  // namespace

std::span<const RmsNormVariant> rms_norm_variants() { return kVariants; }

}  // namespace tern::cpu
