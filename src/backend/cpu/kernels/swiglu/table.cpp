// The variants of swiglu, fastest first.
#include <array>

#include "backend/cpu/kernels/swiglu/kernels.h"

namespace tern::cpu {
namespace {

constexpr std::array kVariants = {
#if defined(__x86_64__)
    SwigluVariant{"avx2", {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c}, swiglu_avx2},
#endif
    SwigluVariant{"reference", {}, swiglu_reference},
};

}  // namespace

std::span<const SwigluVariant> swiglu_variants() { return kVariants; }

}  // namespace tern::cpu
