#include "backend/cpu/kernel_set.h"

#include "backend/cpu/prior.h"
#include "backend/cpu/product_choice.h"

namespace tern::cpu {
namespace {

constexpr std::string_view kPackedOp = "packed_product";

struct Request {
  CpuFeatures have;
  const backend::ChoiceContext& context;
  std::vector<std::string>& warnings;
};

std::string missing(CpuFeatures needs, CpuFeatures have) {
  const CpuFeatures lacking = needs.without(have);
  return lacking == CpuFeatures{} ? std::string() : "needs " + to_string(lacking);
}

// Ops without a weight are chosen once: a row is computed from that row alone, and which kernel
// does it must not change with the number of rows.
template <class Variant>
Result<void> choose_one(std::string_view op, std::span<const Variant> variants,
                        const Request& request, Chosen<Variant>& chosen) {
  constexpr std::int64_t kUsualWidth = 1024;
  std::vector<backend::Candidate> candidates;
  for (const Variant& v : variants)
    candidates.push_back({v.name, missing(v.needs, request.have),
                          row_work(kUsualWidth, 1, own_efficiency(v.needs, request.have))});
  const backend::Problem problem{.op = std::string(op),
                                 .dtypes = "f32",
                                 .layout = "rows",
                                 .n = kUsualWidth,
                                 .k = 0,
                                 .m = 1,
                                 .alignment = 64};
  TERN_ASSIGN(const backend::Choice choice,
              backend::choose(problem, candidates, request.context, request.warnings));
  // The time is that of a row that stands for all, so it is not said.
  chosen = {&variants[choice.index],
            choice.basis == backend::Basis::kPredicted
                ? fmt::format("{}, {}", to_string(choice.basis), choice.lead)
                : choice.reason};
  return {};
}

template <class Variant>
std::vector<std::string_view> names_of(std::span<const Variant> variants) {
  std::vector<std::string_view> names;
  for (const Variant& v : variants) names.emplace_back(v.name);
  return names;
}

}  // namespace

PackedTiling packed_tiling(CpuFeatures have, std::span<const std::string> pins) {
  PackedTiling tiling = select_packed_variant(have).tiling;
  const Result<std::vector<backend::Pin>> parsed = backend::parse_pins(pins);
  if (!parsed.ok()) return tiling;
  for (const backend::Pin& pin : *parsed)
    for (const PackedVariant& v : packed_variants())
      if (pin.op == kPackedOp && pin.variant == v.name && v.needs != CpuFeatures{} &&
          have.contains(v.needs))
        tiling = v.tiling;
  return tiling;
}

std::vector<backend::Pinnable> pinnable_kernels() {
  std::vector<backend::Pinnable> ops;
  for (std::string_view op :
       {kPackedOp, std::string_view("block_product"), std::string_view("dense_product")})
    ops.push_back({op, product_variant_names(op)});
  ops.push_back({"rms_norm", names_of(rms_norm_variants())});
  ops.push_back({"rope", names_of(rope_variants())});
  ops.push_back({"kv_store", names_of(kv_store_variants())});
  ops.push_back({"attention", names_of(attention_variants())});
  ops.push_back({"swiglu", names_of(swiglu_variants())});
  ops.push_back({"elementwise", names_of(elementwise_variants())});
  return ops;
}

Result<KernelSet> choose_kernels(CpuFeatures have, const backend::ChoiceContext& context,
                                 std::vector<std::string>& warnings) {
  const Request request{have, context, warnings};
  KernelSet set;
  // Pins of packed kernels have decided the tiling: of those that read it the pinned or best one.
  TERN_TRY(choose_one(kPackedOp, packed_variants(), request, set.packed));
  TERN_TRY(choose_one<BlockProductVariant>("block_product", block_product_variants(), request,
                                           set.block));
  TERN_TRY(choose_one<RmsNormVariant>("rms_norm", rms_norm_variants(), request, set.rms_norm));
  TERN_TRY(choose_one<RopeVariant>("rope", rope_variants(), request, set.rope));
  TERN_TRY(choose_one<KvStoreVariant>("kv_store", kv_store_variants(), request, set.kv_store));
  TERN_TRY(choose_one<AttentionVariant>("attention", attention_variants(), request, set.attention));
  TERN_TRY(choose_one<SwigluVariant>("swiglu", swiglu_variants(), request, set.swiglu));
  TERN_TRY(choose_one<ElementwiseVariant>("elementwise", elementwise_variants(), request,
                                          set.elementwise));
  return set;
}

}  // namespace tern::cpu
