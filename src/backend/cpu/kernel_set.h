// The kernels of the CPU that one plan uses, each chosen from its table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/choice/choose.h"
#include "backend/cpu/kernels/attention/attention.h"
#include "backend/cpu/kernels/block_product/block_product.h"
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

// What every op of a plan shares. Which kernel multiplies by a weight is chosen per shape and
// number of rows (product_choice.h); `packed` and `block` write the integers that products read.
struct KernelSet {
  Chosen<PackedVariant> packed;
  Chosen<BlockProductVariant> block;
  Chosen<RmsNormVariant> rms_norm;
  Chosen<RopeVariant> rope;
  Chosen<KvStoreVariant> kv_store;
  Chosen<AttentionVariant> attention;
  Chosen<SwigluVariant> swiglu;
  Chosen<ElementwiseVariant> elementwise;
};

// Everything that --pin may name: all variants of all tables.
[[nodiscard]] std::vector<backend::Pinnable> pinnable_kernels();

// Errors: kUnsupported when an op has no variant that runs.
[[nodiscard]] Result<KernelSet> choose_kernels(CpuFeatures have,
                                               const backend::ChoiceContext& context,
                                               std::vector<std::string>& warnings);

// The tiling of packed weights: that of the processor's best variant, or of the one that is pinned,
// so that there is one copy of the weights and it is the one that runs. `pins` as in
// PlanOptions::pins.
[[nodiscard]] PackedTiling packed_tiling(CpuFeatures have, std::span<const std::string> pins);

}  // namespace tern::cpu
