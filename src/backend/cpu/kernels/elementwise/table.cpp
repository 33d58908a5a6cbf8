// The variants of elementwise, fastest first.
#include <array>

#include "backend/cpu/kernels/elementwise/kernels.h"

namespace tern::cpu {
namespace {

constexpr std::array kVariants = {
#if defined(__x86_64__)
    ElementwiseVariant{"avx2",
                       {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c},
                       add_avx2,
                       has_non_finite_avx2},
#endif
    ElementwiseVariant{"reference", {}, add_reference, has_non_finite_reference},
};

}  // namespace

std::span<const ElementwiseVariant> elementwise_variants() { return kVariants; }

}  // namespace tern::cpu
