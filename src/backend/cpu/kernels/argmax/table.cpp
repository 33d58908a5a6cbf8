// The variants of argmax, fastest first.
#include <array>

#include "backend/cpu/kernels/argmax/kernels.h"

namespace tern::cpu {
namespace {

constexpr std::array kVariants = {
#if defined(__x86_64__)
    ArgmaxVariant{"avx2", {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c}, argmax_avx2},
#endif
    ArgmaxVariant{"reference", {}, argmax_reference},
};

}  // namespace

std::span<const ArgmaxVariant> argmax_variants() { return kVariants; }

}  // namespace tern::cpu
