#include "backend/cpu/product_choice.h"

#include <algorithm>

namespace tern::cpu {
namespace {

using backend::Candidate;
using backend::Problem;

constexpr std::string_view kDense = "dense_product";
constexpr std::string_view kBlock = "block_product";
constexpr std::string_view kPacked = "packed_product";

std::string missing(CpuFeatures needs, CpuFeatures have) {
  const CpuFeatures lacking = needs.without(have);
  return lacking == CpuFeatures{} ? std::string() : "needs " + to_string(lacking);
}

std::string vendor_refusal(const ProductShape& shape, const ProductRules& rules) {
  if (rules.vendor.empty()) return "is not there, or --isa excludes it";
  if (rules.is_exact) return "sums in an order of its own, which --exact excludes";
  constexpr std::int64_t kMost = 0x7FFFFFFF;
  if (shape.inputs < 1 || shape.inputs > kMost || shape.outputs < 1 || shape.outputs > kMost)
    return fmt::format("takes 1 to {} inputs and outputs", kMost);
  return {};
}

std::string packed_refusal(const PackedVariant& v, const ProductRules& rules) {
  std::string why = missing(v.needs, rules.have);
  if (!why.empty() || v.needs == CpuFeatures{}) return why;
  if (v.tiling != rules.tiling)
    return "reads another layout of the weights, which a pin of it would give them";
  if (!rules.writes_tables) return "reads tables that the integers of 'reference' lack";
  return {};
}

template <class Variant>
void add(ProductCandidates& all, const Variant& v, std::string refusal, const ProductShape& shape,
         std::int64_t rows, CpuFeatures have) {
  ProductVariant variant;
  variant.name = v.name;
  if constexpr (std::is_same_v<Variant, DenseProductVariant>) variant.dense = &v;
  if constexpr (std::is_same_v<Variant, BlockProductVariant>) variant.block = &v;
  if constexpr (std::is_same_v<Variant, PackedVariant>) variant.packed = &v;
  all.variants.push_back(variant);
  all.candidates.push_back(
      {v.name, std::move(refusal), own_work(shape, rows, own_efficiency(v.needs, have))});
}

// Whether any two variants of it give the same bits.
bool has_one_result(const ProductShape& shape) {
  return !shape.is_float && quant::is_packed(shape.format);
}

}  // namespace

std::string_view product_op(quant::Format format) {
  switch (quant::info(format).kind) {
    case quant::FormatClass::kDense:
      return kDense;
    case quant::FormatClass::kBlock:
      return kBlock;
    case quant::FormatClass::kPacked:
      break;
  }
  return kPacked;
}

Problem problem_of(const ProductShape& s, std::int64_t rows, PackedTiling tiling) {
  const quant::FormatInfo& format = quant::info(s.format);
  Problem p;
  p.op = product_op(s.format);
  p.dtypes = fmt::format("{} x {} -> f32", s.is_float ? "f32" : "i12", format.tag);
  p.n = s.outputs;
  p.k = s.inputs;
  p.m = rows;
  switch (format.kind) {
    case quant::FormatClass::kDense:
      p.layout = "rows";
      p.alignment = backend::alignment_class(static_cast<std::uint64_t>(s.inputs) *
                                             static_cast<std::uint64_t>(format.block_bytes));
      break;
    case quant::FormatClass::kBlock:
      p.layout = "rows8";
      break;
    case quant::FormatClass::kPacked:
      p.layout = tiling == PackedTiling::kBytes ? "rows32 bytes" : "rows32 words";
      break;
  }
  return p;
}

std::optional<ProductShape> shape_of(const Problem& p) {
  for (const quant::FormatInfo& format : quant::kFormats) {
    for (const bool is_float : {true, false}) {
      const ProductShape shape{format.format, p.n, p.k, is_float};
      for (const PackedTiling tiling : {PackedTiling::kBytes, PackedTiling::kWords}) {
        Problem same = problem_of(shape, p.m, tiling);
        if (same == p) return shape;
      }
    }
  }
  return std::nullopt;
}

ProductCandidates product_candidates(const ProductShape& shape, std::int64_t rows,
                                     const ProductRules& rules) {
  ProductCandidates all;
  const std::string_view op = product_op(shape.format);
  if (op == kDense) {
    for (const DenseProductVariant& v : dense_product_variants())
      add(all, v, missing(v.needs, rules.have), shape, rows, rules.have);
    ProductVariant vendor;
    vendor.name = kVendorVariant;
    vendor.is_vendor = true;
    all.variants.push_back(vendor);
    all.candidates.push_back(
        {kVendorVariant, vendor_refusal(shape, rules),
         vendor_work(shape, rows, vendor_efficiency(rules.vendor, rules.have))});
  } else if (op == kBlock) {
    for (const BlockProductVariant& v : block_product_variants())
      add(all, v, missing(v.needs, rules.have), shape, rows, rules.have);
  } else {
    for (const PackedVariant& v : packed_variants())
      add(all, v, packed_refusal(v, rules), shape, rows, rules.have);
  }
  return all;
}

std::vector<std::string_view> product_variant_names(std::string_view op) {
  std::vector<std::string_view> names;
  if (op == kDense) {
    for (const DenseProductVariant& v : dense_product_variants()) names.emplace_back(v.name);
    names.push_back(kVendorVariant);
  } else if (op == kBlock) {
    for (const BlockProductVariant& v : block_product_variants()) names.emplace_back(v.name);
  } else if (op == kPacked) {
    for (const PackedVariant& v : packed_variants()) names.push_back(v.name);
  }
  return names;
}

Result<std::vector<ProductKernel>> choose_product(const ProductShape& shape, std::int64_t most_rows,
                                                  const ProductRules& rules,
                                                  const backend::ChoiceContext& context,
                                                  std::vector<std::string>& warnings) {
  std::vector<ProductKernel> kernels;
  const std::int64_t last = backend::rows_bucket_of(most_rows);
  const bool is_one = rules.is_exact && !has_one_result(shape);
  for (std::int64_t rows = 1; rows <= last; rows *= 2) {
    const ProductCandidates all = product_candidates(shape, rows, rules);
    TERN_ASSIGN(backend::Choice choice, backend::choose(problem_of(shape, rows, rules.tiling),
                                                        all.candidates, context, warnings));
    ProductKernel kernel{is_one ? last : rows, all.variants[choice.index],
                         std::move(choice.reason)};
    if (is_one && choice.basis != backend::Basis::kOnly && choice.basis != backend::Basis::kPinned)
      kernel.reason += "; --exact: the choice for one row holds for all";
    kernels.push_back(std::move(kernel));
    if (is_one) break;
  }
  return kernels;
}

}  // namespace tern::cpu
