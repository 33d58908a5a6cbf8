// The table of packed kernels, and how one is chosen.
#include <array>

#include "backend/cpu/kernels/packed/packed.h"
#include "backend/cpu/kernels/packed/reference.h"
#if defined(__x86_64__)
#include "backend/cpu/kernels/packed/x86.h"
#endif

namespace tern::cpu {
namespace {

// Best first. The reference row is last and runs everywhere.
constexpr std::array kVariants = {
#if defined(__x86_64__)
    PackedVariant{.name = "lut512",
                  .needs = {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c,
                            CpuFeature::kAvx512f, CpuFeature::kAvx512bw, CpuFeature::kAvx512dq,
                            CpuFeature::kAvx512vl, CpuFeature::kAvx512vnni},
                  .tiling = PackedTiling::kWords,
                  .quantize = avx512_quantize,
                  .matmul = avx512_matmul,
                  .matmul_f32 = avx512_matmul_f32,
                  .decode_row = reference_decode_row},
    PackedVariant{.name = "lut",
                  .needs = {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c},
                  .tiling = PackedTiling::kBytes,
                  .quantize = avx2_quantize,
                  .matmul = avx2_matmul,
                  .matmul_f32 = avx2_matmul_f32,
                  .decode_row = reference_decode_row},
#endif
    PackedVariant{.name = "reference",
                  .needs = {},
                  .tiling = PackedTiling::kBytes,
                  .quantize = reference_quantize,
                  .matmul = reference_matmul,
                  .matmul_f32 = reference_matmul_f32,
                  .decode_row = reference_decode_row},
};

}  // namespace

std::span<const PackedVariant> packed_variants() { return kVariants; }

const PackedVariant& select_packed_variant(CpuFeatures features) {
  for (const PackedVariant& variant : kVariants) {
    if (features.contains(variant.needs)) return variant;
  }
  return kVariants.back();
}

}  // namespace tern::cpu
