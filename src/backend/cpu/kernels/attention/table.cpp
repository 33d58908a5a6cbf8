// The variants of attention, fastest first.
#include <array>

#include "backend/cpu/kernels/attention/kernels.h"

namespace tern::cpu {
namespace {

constexpr std::array kVariants = {
#if defined(__x86_64__)
    AttentionVariant{"avx2",
                     {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c},
                     attention_split_avx2,
                     attention_merge_avx2,
                     attention_prefill_avx2},
#endif
    AttentionVariant{"reference",
                     {},
                     attention_split_reference,
                     attention_merge_reference,
                     attention_prefill_reference},
};

}  // namespace

std::span<const AttentionVariant> attention_variants() { return kVariants; }

}  // namespace tern::cpu
