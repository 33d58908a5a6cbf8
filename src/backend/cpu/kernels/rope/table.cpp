// The variants of rope, fastest first.
#include <array>

#include "backend/cpu/kernels/rope/kernels.h"

namespace tern::cpu {
namespace {

constexpr std::array kVariants = {
#if defined(__x86_64__)
    RopeVariant{"avx2", {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c}, rope_avx2},
#endif
    RopeVariant{"reference", {}, rope_reference},
};

}  // namespace

std::span<const RopeVariant> rope_variants() { return kVariants; }

}  // namespace tern::cpu
