#include "backend/cpu/kernel_set.h"

#include <array>

namespace tern::cpu {
namespace {

// The names under which pins and explain speak of the kernels.
constexpr std::array<std::string_view, 9> kOps = {
    "packed_product", "block_product", "dense_product", "rms_norm",   "rope",
    "kv_store",       "attention",     "swiglu",        "elementwise"};

struct Request {
  CpuFeatures have;
  std::span<const backend::Pin> pins;
  std::vector<std::string>& warnings;
};

template <class Variant>
Result<void> choose_one(std::string_view op, std::span<const Variant> variants,
                        const Request& request, Chosen<Variant>& chosen) {
  std::vector<backend::Candidate> candidates;
  for (const Variant& v : variants)
    candidates.push_back({v.name, to_string(v.needs.without(request.have))});
  Result<backend::Choice> choice = backend::choose(op, candidates, request.pins, request.warnings);
  TERN_TRY(choice);
  chosen = {&variants[choice->index], choice->reason};
  return {};
}

Result<void> check_pins(std::span<const backend::Pin> pins) {
  for (const backend::Pin& pin : pins) {
    bool is_known = false;
    std::string known;
    for (std::string_view op : kOps) {
      is_known = is_known || op == pin.op;
      known += (known.empty() ? "" : ", ") + std::string(op);
    }
    if (!is_known)
      return fail(ErrorCode::kUsage, "--pin {}:{}: there is no op '{}'; pinnable are {}", pin.op,
                  pin.variant, pin.op, known);
  }
  return {};
}

}  // namespace

PackedTiling packed_tiling(CpuFeatures have) { return select_packed_variant(have).tiling; }

Result<KernelSet> choose_kernels(CpuFeatures have, const std::vector<std::string>& pins,
                                 std::vector<std::string>& warnings) {
  const Result<std::vector<backend::Pin>> parsed = backend::parse_pins(pins);
  TERN_TRY(parsed);
  TERN_TRY(check_pins(*parsed));
  const Request request{have, *parsed, warnings};
  KernelSet set;
  // A variant that reads another tiling than the machine's is no candidate: its weights are not
  // there.
  std::vector<PackedVariant> packed;
  for (const PackedVariant& v : packed_variants())
    if (v.tiling == packed_tiling(have) || v.needs == CpuFeatures{}) packed.push_back(v);
  Chosen<PackedVariant> chosen;
  TERN_TRY(choose_one<PackedVariant>(kOps[0], packed, request, chosen));
  for (const PackedVariant& v : packed_variants())
    if (v.name == chosen.variant->name) set.packed = {&v, chosen.reason};
  TERN_TRY(choose_one(kOps[1], block_product_variants(), request, set.block));
  TERN_TRY(choose_one(kOps[2], dense_product_variants(), request, set.dense));
  TERN_TRY(choose_one(kOps[3], rms_norm_variants(), request, set.rms_norm));
  TERN_TRY(choose_one(kOps[4], rope_variants(), request, set.rope));
  TERN_TRY(choose_one(kOps[5], kv_store_variants(), request, set.kv_store));
  TERN_TRY(choose_one(kOps[6], attention_variants(), request, set.attention));
  TERN_TRY(choose_one(kOps[7], swiglu_variants(), request, set.swiglu));
  TERN_TRY(choose_one(kOps[8], elementwise_variants(), request, set.elementwise));
  return set;
}

}  // namespace tern::cpu
