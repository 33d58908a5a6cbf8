// Tests of the builder, the shape rules, the checks and the passes.
#include "program/program.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "program/builder.h"
#include "program/passes/passes.h"
#include "program/passes/place.h"

namespace tern::program {
namespace {

using quant::Format;

// A set with a packed q|k, an F16 v, norms and a head: q is packed and v is not.
struct Fixture {
  WeightSet set;
  WeightId table, norm, qk, v, out, head;

  Fixture() {
    table = set.add({"table", Format::kQ1G128, 32, 128, kUseLookup, {}});
    norm = set.add({"norm", Format::kF32, 1, 128, kUseVector, {}});
    qk = set.add({"qk", Format::kQ1G128, 256, 128, kUseMatmul, {}});
    v = set.add({"v", Format::kF16, 128, 128, kUseMatmul, {}});
    out = set.add({"out", Format::kQ1G128, 128, 128, kUseMatmul, {}});
    head = set.add({"head", Format::kF16, 32, 128, kUseMatmul, {}});
  }

  [[nodiscard]] Program build(bool keeps_product = false) const {
    Builder b("test", {4, 1024}, 1, set);
    b.region("layer", 0);
    const std::uint32_t rope = b.rope_table({std::vector<double>(32, 1.0), 1.0});
    const ValueId kv = b.kv_state({"kv", 2, 64, KvDtype::kF16, KvDtype::kF16});
    const ValueId x = b.embed(table);
    const ValueId h = b.rms_norm(x, norm, 1e-6F);
    const ValueId both = b.linear(h, qk);
    const ValueId q = b.rope(b.slice(both, 0, 128), 64, rope, RopePairs::kHalves);
    const ValueId k = b.rope(b.slice(both, 128, 128), 64, rope, RopePairs::kHalves);
    b.kv_store(kv, k, b.linear(h, v));
    const ValueId product = b.linear(b.attention(q, kv, 2, 0.125F), out);
    const ValueId y = b.add(x, product);
    b.region("head");
    if (keeps_product) b.output("product", product);
    b.output("logits", b.linear(b.gather_rows(y), head));
    return std::move(b).finish();
  }
};

int count_ops(const Program& p, std::string_view name) {
  int count = 0;
  for (const Op& op : p.ops) count += name_of(op) == name ? 1 : 0;
  return count;
}

TEST(Program, ReadsAsAListOfOpsWithShapes) {
  const std::string text = to_text(Fixture().build());
  EXPECT_NE(text.find("linear(%4, qk [256 x 128 q1_g128]) -> [rows, 256]"), std::string::npos)
      << text;
  EXPECT_NE(text.find("-> [outputs, 32]"), std::string::npos) << text;
}

TEST(Program, QuantizeGivesPackedProductsIntegersAndLeavesFloatsToTheOthers) {
  const Program p = quantize(Fixture().build(), Activations::kI12);
  EXPECT_EQ(count_ops(p, "quantize"), 2);  // of h for q|k, of the attention's output
  for (const Op& op : p.ops) {
    const Linear* linear = std::get_if<Linear>(&op.kind);
    if (!linear) continue;
    const bool is_packed = quant::is_packed(p.at(linear->weight).weight.format);
    EXPECT_EQ(p.at(linear->x).element, is_packed ? Element::kQuant : Element::kF32);
  }
}

TEST(Program, QuantizeIsSkippedForFloatActivations) {
  EXPECT_EQ(count_ops(quantize(Fixture().build(), Activations::kF32), "quantize"), 0);
}

TEST(Program, FuseJoinsAnAddToTheProductBeforeIt) {
  const Program p = run_passes(Fixture().build(), Activations::kI12);
  EXPECT_EQ(count_ops(p, "add"), 0);
  int residuals = 0;
  for (const Op& op : p.ops)
    if (const Linear* linear = std::get_if<Linear>(&op.kind))
      residuals += linear->residual != kNoValue ? 1 : 0;
  EXPECT_EQ(residuals, 1);
}

TEST(Program, FuseKeepsAnIntermediateThatSomeoneElseReads) {
  const Program p = run_passes(Fixture().build(true), Activations::kI12);
  EXPECT_EQ(count_ops(p, "add"), 1);
}

TEST(Program, CheckFindsAValueThatIsReadBeforeItIsMade) {
  Program p = Fixture().build();
  std::swap(p.ops[0], p.ops[1]);
  EXPECT_THROW(check(p), Error);
}

TEST(Program, ShapeRulesRefuseAProductOfTheWrongWidth) {
  const Fixture f;
  Builder b("test", {1, 1024}, 1, f.set);
  const ValueId x = b.embed(f.table);
  const ValueId half = b.slice(x, 0, 64);
  EXPECT_THROW((void)b.linear(half, f.v), Error);
  EXPECT_THROW((void)b.slice(x, 100, 64), Error);
}

TEST(Program, PlaceNeverOverlapsValuesThatLiveAtTheSameTime) {
  const Program p = run_passes(Fixture().build(), Activations::kI12);
  const auto bytes_of = [&p](ValueId v) -> std::uint64_t {
    const Value& value = p.at(v);
    if (value.element == Element::kF32) return static_cast<std::uint64_t>(value.rows.width) * 16;
    return value.element == Element::kQuant ? 640 : 0;
  };
  const ArenaPlan plan = place(p, bytes_of, 64);
  const std::vector<ViewOf> views = resolve_views(p);
  // Life times, found again in a plainer way: a value is alive from its op to its last reader.
  std::vector<std::size_t> first(p.values.size(), 0), last(p.values.size(), 0);
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    if (p.ops[i].result != kNoValue) first[p.ops[i].result] = last[p.ops[i].result] = i;
    for_each_operand(p.ops[i], [&](ValueId v, Access) { last[views[v].root] = i; });
  }
  for (const Output& o : p.outputs) last[views[o.value].root] = p.ops.size();
  std::uint64_t sum = 0;
  for (ValueId a = 0; a < p.values.size(); ++a) {
    if (p.at(a).kind != ValueKind::kActivation || views[a].root != a) continue;
    sum += bytes_of(a);
    EXPECT_EQ(plan.offsets[a] % 64, 0U);
    EXPECT_LE(plan.offsets[a] + bytes_of(a), plan.bytes);
    for (ValueId b = a + 1; b < p.values.size(); ++b) {
      if (p.at(b).kind != ValueKind::kActivation || views[b].root != b) continue;
      if (last[a] < first[b] || last[b] < first[a]) continue;
      EXPECT_TRUE(plan.offsets[a] + bytes_of(a) <= plan.offsets[b] ||
                  plan.offsets[b] + bytes_of(b) <= plan.offsets[a])
          << "values " << a << " and " << b;
    }
  }
  EXPECT_LT(plan.bytes, sum);  // something is shared
}

TEST(Program, CostsCountWeightsOnceAndRowsByTheRow) {
  const Program p = Fixture().build();
  const Op* product = nullptr;
  for (const Op& op : p.ops)
    if (const Linear* l = std::get_if<Linear>(&op.kind); l && p.at(l->weight).name == "qk")
      product = &op;
  ASSERT_NE(product, nullptr);
  const OpCost one = cost_of(p, *product, {1, 1, 100});
  const OpCost four = cost_of(p, *product, {4, 1, 100});
  EXPECT_DOUBLE_EQ(one.flops, 2.0 * 256 * 128);
  EXPECT_DOUBLE_EQ(four.flops, 4 * one.flops);
  EXPECT_DOUBLE_EQ(one.weight_bytes, 256 * 18.0);
  EXPECT_DOUBLE_EQ(four.weight_bytes, one.weight_bytes);
}

TEST(Buckets, RoundUpToTheNextOne) {
  EXPECT_EQ(rows_bucket(1), 1);
  EXPECT_EQ(rows_bucket(3), 4);
  EXPECT_EQ(rows_bucket(512), 512);
  EXPECT_EQ(rows_bucket(513), 513);
  EXPECT_EQ(context_bucket(1), 1024);
  EXPECT_EQ(context_bucket(1025), 4096);
}

}  // namespace
}  // namespace tern::program
