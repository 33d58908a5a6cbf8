// The variants of block_product, fastest first.
#include <array>

#include "backend/cpu/kernels/block_product/kernels.h"

namespace tern::cpu {
namespace {

constexpr std::array kVariants = {
#if defined(__x86_64__)
    BlockProductVariant{"avx2",
                        {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c},
                        block_quantize_avx2,
                        block_product_avx2,
                        block_product_f32_avx2},
#endif
    BlockProductVariant{"reference",
                        {},
                        block_quantize_reference,
                        block_product_reference,
                        block_product_f32_reference},
};

}  // namespace

std::span<const BlockProductVariant> block_product_variants() { return kVariants; }

}  // namespace tern::cpu
