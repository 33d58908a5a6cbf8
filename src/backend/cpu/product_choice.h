// Which kernel multiplies by a weight, by number of rows: own variants, and OpenBLAS for floats.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/choice/choose.h"
#include "backend/cpu/kernels/block_product/block_product.h"
#include "backend/cpu/kernels/dense_product/dense_product.h"
#include "backend/cpu/kernels/packed/packed.h"
#include "backend/cpu/prior.h"
#include "backend/plan.h"

namespace tern::cpu {

// The name of the library's product among the variants of dense_product.
inline constexpr std::string_view kVendorVariant = "openblas";

[[nodiscard]] std::string_view product_op(quant::Format format);  // "dense_product"
[[nodiscard]] backend::Problem problem_of(const ProductShape& shape, std::int64_t rows,
                                          PackedTiling tiling);
// The other way; none for what is no product of the CPU.
[[nodiscard]] std::optional<ProductShape> shape_of(const backend::Problem& problem);

// What decides which variants may run, beside the shape.
struct ProductRules {
  CpuFeatures have;
  std::string vendor;  // DeviceProfile::vendor; empty: there is none
  PackedTiling tiling = PackedTiling::kBytes;
  bool writes_tables = true;  // the integers hold the tables that packed kernels read
  bool is_exact = false;
};

// A variant of a product's table; exactly one of the pointers is set, or is_vendor.
struct ProductVariant {
  std::string_view name;
  const DenseProductVariant* dense = nullptr;
  const BlockProductVariant* block = nullptr;
  const PackedVariant* packed = nullptr;
  bool is_vendor = false;
};

struct ProductCandidates {
  std::vector<ProductVariant> variants;
  std::vector<backend::Candidate> candidates;  // of the same index
};
[[nodiscard]] ProductCandidates product_candidates(const ProductShape& shape, std::int64_t rows,
                                                   const ProductRules& rules);

// Names of the variants of an op's table, for pins.
[[nodiscard]] std::vector<std::string_view> product_variant_names(std::string_view op);

struct ProductKernel {
  std::int64_t most_rows = 0;
  ProductVariant variant;
  std::string reason;
};

// By ascending rows, up to the bucket of `most_rows`. Under `exact` one kernel for any number of
// rows, where its sums depend on the variant. Errors: kUnsupported as choose().
[[nodiscard]] Result<std::vector<ProductKernel>> choose_product(
    const ProductShape& shape, std::int64_t most_rows, const ProductRules& rules,
    const backend::ChoiceContext& context, std::vector<std::string>& warnings);

}  // namespace tern::cpu
