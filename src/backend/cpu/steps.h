// The steps of a bound program: one plain struct per op, with addresses in the arena and a chosen
// kernel.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "backend/cpu/kernel_set.h"
#include "backend/cpu/product_choice.h"
#include "backend/cpu/resident.h"
#include "backend/cpu/run_context.h"
#include "backend/cpu/vendor_products.h"

namespace tern::cpu {

struct EmbedStep {
  const Resident* table = nullptr;
  PackedDecodeRowFn decode_packed = nullptr;
  RowsRef y;
  void run(RunContext& ctx) const;
};

struct RmsNormStep {
  RmsNormFn fn = nullptr;
  const ResidentVector* weight = nullptr;
  RowsRef x, y;
  float eps = 0;
  void run(RunContext& ctx) const;
};

// Writes up to two forms of the integers, as the products that read them need.
struct QuantizeStep {
  RowsRef x;
  QuantizeFn packed_fn = nullptr;
  RecordsView records{};
  BlockQuantizeFn block_fn = nullptr;
  BlockActivations block{};
  void run(RunContext& ctx) const;
};

// What runs a product, by ascending rows.
template <class Fn>
struct ProductFn {
  std::int64_t most_rows = 0;
  Fn fn = nullptr;  // null: the vendor's product
};
template <class Fn>
using ProductFns = std::vector<ProductFn<Fn>>;
template <class Fn>
[[nodiscard]] Fn function_for(const ProductFns<Fn>& fns, std::int64_t rows) {
  for (const ProductFn<Fn>& f : fns)
    if (rows <= f.most_rows) return f.fn;
  return fns.back().fn;
}

struct PackedLinearStep {
  ProductFns<PackedMatmulFn> fns;
  const ResidentPacked* weight = nullptr;
  RecordsView records{};  // integers, or
  RowsRef x;              // floats (--activations f32)
  RowsRef y;
  const float* bias = nullptr;
  RowsRef residual;  // data nullptr: none
  void run(RunContext& ctx) const;
};

struct BlockLinearStep {
  ProductFns<BlockProductFn> fns;
  const BlockMatrix* weight = nullptr;
  BlockActivations block{};
  RowsRef x;
  RowsRef y;
  const float* bias = nullptr;
  RowsRef residual;
  void run(RunContext& ctx) const;
};

struct DenseLinearStep {
  ProductFns<DenseProductFn> fns;
  // What runs where the vendor would and its bridge refuses, which load() has looked at.
  DenseProductFn own = nullptr;
  VendorProblem vendor;  // where fns has a null
  const ResidentDense* weight = nullptr;
  RowsRef x, y;
  const float* bias = nullptr;
  RowsRef residual;
  void run(RunContext& ctx) const;

 private:
  [[nodiscard]] bool run_vendor(RunContext& ctx, int rows) const;
};

struct RopeStep {
  RopeFn fn = nullptr;
  RowsRef x, y;
  const RopeRows* table = nullptr;
  int head_dim = 0;
  RopeMode mode = RopeMode::kHalves;
  void run(RunContext& ctx) const;
};

struct KvStoreStep {
  KvStoreFn fn = nullptr;
  KvView kv;
  RowsRef k, v;
  void run(RunContext& ctx) const;
};

struct AttentionStep {
  const AttentionVariant* variant = nullptr;
  KvView kv;
  RowsRef q, y;
  int heads = 0;
  float scale = 0;
  void run(RunContext& ctx) const;
};

struct AddStep {
  AddFn fn = nullptr;
  RowsRef a, b, y;
  void run(RunContext& ctx) const;
};

struct SwigluStep {
  SwigluFn fn = nullptr;
  RowsRef gate, up, y;
  void run(RunContext& ctx) const;
};

struct GatherRowsStep {
  RowsRef x, y;
  void run(RunContext& ctx) const;
};

// A slice: nothing to do.
struct NoStep {
  void run(RunContext&) const {}
};

using Step = std::variant<EmbedStep, RmsNormStep, QuantizeStep, PackedLinearStep, BlockLinearStep,
                          DenseLinearStep, RopeStep, KvStoreStep, AttentionStep, AddStep,
                          SwigluStep, GatherRowsStep, NoStep>;

// Rows of one sequence that attention takes in its decode form: as many as partial results fit into
// the memory that was planned for them.
[[nodiscard]] int attention_decode_rows(int bucket_rows, int splits);

}  // namespace tern::cpu
