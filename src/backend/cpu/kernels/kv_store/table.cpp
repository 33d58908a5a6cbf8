// The variants of kv_store, fastest first.
#include <array>

#include "backend/cpu/kernels/kv_store/kernels.h"

namespace tern::cpu {
namespace {

constexpr std::array kVariants = {
#if defined(__x86_64__)
    KvStoreVariant{"avx2", {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c}, kv_store_avx2},
#endif
    KvStoreVariant{"reference", {}, kv_store_reference},
};

}  // namespace

std::span<const KvStoreVariant> kv_store_variants() { return kVariants; }

}  // namespace tern::cpu
