// The variants of dense_product, fastest first.
#include <array>

#include "backend/cpu/kernels/dense_product/kernels.h"

namespace tern::cpu {
namespace {

constexpr std::array kVariants = {
#if defined(__x86_64__)
    DenseProductVariant{
        "avx2", {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c}, dense_product_avx2},
#endif
    DenseProductVariant{"reference", {}, dense_product_reference},
};

}  // namespace

std::span<const DenseProductVariant> dense_product_variants() { return kVariants; }

}  // namespace tern::cpu
