// The variants of block_product, fastest first.
#include <array>

#include "backend/cpu/kernels/block_product/kernels.h"

namespace tern::cpu {
namespace {

constexpr CpuFeatures kAvx512Vnni = {
    CpuFeature::kAvx2,     CpuFeature::kFma,      CpuFeature::kF16c,     CpuFeature::kAvx512f,
    CpuFeature::kAvx512bw, CpuFeature::kAvx512dq, CpuFeature::kAvx512vl, CpuFeature::kAvx512vnni};

constexpr std::array kVariants = {
#if defined(__x86_64__)
    BlockProductVariant{"avx512vnni", kAvx512Vnni, block_quantize_avx2, block_product_avx512vnni,
                        block_product_f32_avx2},
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
