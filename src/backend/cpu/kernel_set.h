// The kernels of the CPU that one plan uses, each chosen from its table.
#pragma once

#include <string>
#include <vector>

#include "backend/choice/choose.h"
#include "backend/cpu/kernels/attention/attention.h"
#include "backend/cpu/kernels/block_product/block_product.h"
#include "backend/cpu/kernels/dense_product/dense_product.h"
#include "backend/cpu/kernels/elementwise/elementwise.h"
#include "backend/cpu/kernels/kv_store/kv_store.h"
#include "backend/cpu/kernels/packed/packed.h"
#include "backend/cpu/kernels/rms_norm/rms_norm.h"
#include "backend/cpu/kernels/rope/rope.h"
#include "backend/cpu/kernels/swiglu/swiglu.h"

namespace tern::cpu {

template <class Variant>
struct Chosen {
  const Variant* variant = nullptr;
  std::string reason;
  [[nodiscard]] std::string_view name() const { return variant->name; }
};

struct KernelSet {
  Chosen<PackedVariant> packed;
  Chosen<BlockProductVariant> block;
  Chosen<DenseProductVariant> dense;
  Chosen<RmsNormVariant> rms_norm;
  Chosen<RopeVariant> rope;
  Chosen<KvStoreVariant> kv_store;
  Chosen<AttentionVariant> attention;
  Chosen<SwigluVariant> swiglu;
  Chosen<ElementwiseVariant> elementwise;
};

// Errors: kUsage for a pin whose op or variant does not exist.
[[nodiscard]] Result<KernelSet> choose_kernels(CpuFeatures have,
                                               const std::vector<std::string>& pins,
                                               std::vector<std::string>& warnings);

// The tiling of packed weights: decided by the processor alone, so that there is one copy of the
// weights whatever is pinned.
[[nodiscard]] PackedTiling packed_tiling(CpuFeatures have);

}  // namespace tern::cpu
