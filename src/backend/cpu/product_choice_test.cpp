// Choosing among the products of the CPU: pins, consistency over the shapes of real models,
// scratch.
#include "backend/cpu/product_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "backend/cpu/kernel_set.h"
#include "backend/cpu/vendor_products.h"

namespace tern::cpu {
namespace {

using backend::Basis;
using backend::ChoiceContext;
using backend::MeasuredTable;
using quant::Format;
using ::testing::HasSubstr;

constexpr CpuFeatures kAvx2{CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c};
constexpr CpuFeatures kAvx512 =
    kAvx2.with({CpuFeature::kAvx512f, CpuFeature::kAvx512bw, CpuFeature::kAvx512dq,
                CpuFeature::kAvx512vl, CpuFeature::kAvx512vnni});

backend::DeviceProfile profile(CpuFeatures features, std::string vendor) {
  backend::DeviceProfile p;
  p.architecture = "x86-64";
  p.cpu = features;
  p.cores = 2;
  p.vendor = std::move(vendor);
  return p;
}

ProductRules rules(const backend::DeviceProfile& p) {
  ProductRules r;
  r.have = p.cpu;
  r.vendor = p.vendor;
  r.tiling = packed_tiling(p.cpu, {});
  return r;
}

const std::string kSkylake = "OpenBLAS 0.3.21 SkylakeX";

// (outputs, inputs) of every matrix of a decoder, as it is uploaded: joined where it is.
struct Decoder {
  std::int64_t hidden, feed_forward, heads, kv_heads, head_dim, vocabulary;
};
constexpr std::array kDecoders = {
    Decoder{576, 1536, 9, 3, 64, 49152},       // SmolLM2 135M
    Decoder{960, 2560, 15, 5, 64, 49152},      // SmolLM2 360M
    Decoder{2048, 8192, 32, 32, 64, 49152},    // SmolLM2 1.7B
    Decoder{2048, 8192, 32, 8, 64, 128256},    // Llama 3.2 1B
    Decoder{4096, 14336, 32, 8, 128, 128256},  // Llama 3.1 8B
    Decoder{1024, 3072, 16, 8, 128, 151936},   // Qwen3 0.6B
    Decoder{2048, 6144, 16, 8, 128, 151936},   // Qwen3 1.7B, Bonsai 1.7B
    Decoder{2560, 9728, 32, 8, 128, 151936},   // Qwen3 4B
    Decoder{4096, 12288, 32, 8, 128, 151936},  // Qwen3 8B
};

std::vector<std::pair<std::int64_t, std::int64_t>> matrices() {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (const Decoder& d : kDecoders) {
    const std::int64_t q = d.heads * d.head_dim;
    const std::int64_t kv = d.kv_heads * d.head_dim;
    for (const std::int64_t outputs : {q + 2 * kv, q, kv, 2 * d.feed_forward, d.feed_forward})
      all.emplace_back(outputs, d.hidden);
    all.emplace_back(d.hidden, q);
    all.emplace_back(d.hidden, d.feed_forward);
    all.emplace_back(d.vocabulary, d.hidden);
  }
  return all;
}

// The rule of B.6 for one problem; `table` may be empty.
void expect_consistent(const ProductShape& shape, std::int64_t rows, const ProductRules& r,
                       const backend::DeviceRates& rates, const MeasuredTable* table) {
  const ProductCandidates all = product_candidates(shape, rows, r);
  const backend::Problem problem = problem_of(shape, rows, r.tiling);
  std::vector<std::string> warnings;
  const backend::Choice c =
      backend::choose(problem, all.candidates, ChoiceContext{rates, table, {}}, warnings).value();
  ASSERT_TRUE(all.candidates[c.index].refusal.empty()) << describe(problem);
  const backend::TableRow* measured = table ? table->find(problem) : nullptr;
  for (std::size_t i = 0; i < c.scores.size(); ++i) {
    if (!all.candidates[i].refusal.empty() || c.scores[i].time >= c.expected) continue;
    ASSERT_TRUE(measured) << describe(problem);
    const backend::VariantTime* faster = measured->find(all.candidates[i].name);
    ASSERT_TRUE(faster && !beats(*faster, *measured->find(all.candidates[c.index].name)))
        << describe(problem) << ": " << all.candidates[i].name << " is faster";
  }
}

// A table of made-up times for some of the problems, one calibration old.
MeasuredTable random_table(const std::vector<std::pair<std::int64_t, std::int64_t>>& sides,
                           Format format, const ProductRules& r) {
  std::mt19937 random(23);
  std::uniform_real_distribution<double> us(1, 1000);
  MeasuredTable table(rates_of(profile(r.have, r.vendor)));
  for (const auto& [outputs, inputs] : sides) {
    for (const std::int64_t rows : {1, 8, 512}) {
      if (random() % 2 == 0) continue;
      const ProductShape shape{format, outputs, inputs,
                               quant::info(format).kind == quant::FormatClass::kDense};
      backend::TableRow row;
      row.problem = problem_of(shape, rows, r.tiling);
      for (const backend::Candidate& c : product_candidates(shape, rows, r).candidates) {
        if (!c.refusal.empty() || random() % 4 == 0) continue;
        backend::VariantTime t;
        t.variant = c.name;
        t.median = backend::microseconds(us(random));
        t.predicted = backend::microseconds(us(random));
        t.spread = t.median / 100;
        t.samples = 5;
        row.times.push_back(t);
      }
      table.put(std::move(row));
    }
  }
  return table;
}

TEST(ProductChoice, B6_EveryWeightOfEveryModelIsChosenConsistently) {
  std::vector<std::pair<std::int64_t, std::int64_t>> sides = matrices();
  std::mt19937 random(31);
  for (int i = 0; i < 40; ++i)
    sides.emplace_back(1 + random() % 20000, 256 * (1 + static_cast<std::int64_t>(random() % 32)));
  for (const auto& p :
       {profile(kAvx512, kSkylake), profile(kAvx2, "OpenBLAS 0.3.21 Haswell"), profile({}, "")}) {
    const ProductRules r = rules(p);
    for (const Format format : {Format::kF32, Format::kF16, Format::kQ4_1, Format::kQ1G128}) {
      const bool is_float = quant::info(format).kind == quant::FormatClass::kDense;
      const MeasuredTable table = random_table(sides, format, r);
      for (const auto& [outputs, inputs] : sides)
        for (std::int64_t rows = 1; rows <= 1024; rows += rows < 20 ? 1 : rows / 2) {
          const ProductShape shape{format, outputs, inputs, is_float};
          expect_consistent(shape, rows, r, rates_of(p), nullptr);
          expect_consistent(shape, rows, r, table.rates(), &table);
          if (::testing::Test::HasFatalFailure()) return;
        }
    }
  }
}

TEST(ProductChoice, ThePriorGivesFewRowsToOwnKernelsAndManyToTheLibrary) {
  const backend::DeviceProfile p = profile(kAvx512, kSkylake);
  std::vector<std::string> warnings;
  for (const Format format : {Format::kF32, Format::kF16}) {
    const std::vector<ProductKernel> kernels =
        choose_product({format, 4096, 4096, true}, 512, rules(p), {rates_of(p), nullptr, {}},
                       warnings)
            .value();
    ASSERT_EQ(kernels.size(), 10u);
    EXPECT_EQ(kernels.front().variant.name, "avx2");
    EXPECT_TRUE(kernels.back().variant.is_vendor);
    EXPECT_THAT(kernels.back().reason, HasSubstr("predicted"));
    EXPECT_THAT(kernels.back().reason, HasSubstr("faster than avx2 (predicted)"));
  }
  // A library that takes the processor for an old one is not preferred by anybody.
  const backend::DeviceProfile old = profile(kAvx512, "OpenBLAS 0.3.21 Prescott");
  const std::vector<ProductKernel> of_old =
      choose_product({Format::kF32, 4096, 4096, true}, 512, rules(old),
                     {rates_of(old), nullptr, {}}, warnings)
          .value();
  for (const ProductKernel& k : of_old) EXPECT_FALSE(k.variant.is_vendor) << k.most_rows;
}

TEST(ProductChoice, Br24_ShapesThatStarveAreProblemsLikeAnyOther) {
  const backend::DeviceProfile p = profile(kAvx512, kSkylake);
  struct Case {
    std::int64_t rows, outputs, inputs;
  };
  for (const Case& c : {Case{1, 48, 2048}, Case{5, 1024, 1024}, Case{6, 1024, 1024},
                        Case{17, 1024, 1024}, Case{1, 128256, 2048}})
    for (const Format format : {Format::kF32, Format::kF16}) {
      const ProductCandidates all =
          product_candidates({format, c.outputs, c.inputs, true}, c.rows, rules(p));
      const auto eligible =
          std::count_if(all.candidates.begin(), all.candidates.end(),
                        [](const backend::Candidate& each) { return each.refusal.empty(); });
      EXPECT_GE(eligible, 3) << "avx2, reference and openblas compete";
      expect_consistent({format, c.outputs, c.inputs, true}, c.rows, rules(p), rates_of(p),
                        nullptr);
    }
}

// BR-55: proof by switching a thing off, and by what is then said to run.
TEST(ProductChoice, Br55_ExactTakesTheLibraryAwayAndSaysSo) {
  const backend::DeviceProfile p = profile(kAvx512, kSkylake);
  ProductRules r = rules(p);
  std::vector<std::string> warnings;
  const ProductShape shape{Format::kF32, 4096, 4096, true};
  const ChoiceContext context{rates_of(p), nullptr, {}};
  EXPECT_TRUE(choose_product(shape, 512, r, context, warnings).value().back().variant.is_vendor);
  r.is_exact = true;
  const auto exact = choose_product(shape, 512, r, context, warnings).value();
  ASSERT_EQ(exact.size(), 1u) << "one kernel for every number of rows";
  EXPECT_EQ(exact[0].most_rows, 512);
  EXPECT_EQ(exact[0].variant.name, "avx2");
  EXPECT_THAT(exact[0].reason, HasSubstr("--exact: the choice for one row holds for all"));
  EXPECT_THAT(exact[0].reason, HasSubstr("openblas sums in an order of its own"));
}

TEST(ProductChoice, PackedIntegersMayChangeTheVariantUnderExact) {
  ProductRules r = rules(profile(kAvx512, ""));
  r.is_exact = true;
  std::vector<std::string> warnings;
  EXPECT_EQ(choose_product({Format::kQ1G128, 1024, 1024, false}, 64, r,
                           {rates_of(profile(kAvx512, "")), nullptr, {}}, warnings)
                .value()
                .size(),
            7u);
}

TEST(ProductChoice, ProblemsAndShapesAreTwoWritingsOfOneThing) {
  for (const quant::FormatInfo& format : quant::kFormats)
    for (const bool is_float : {true, false}) {
      const ProductShape shape{format.format, 512, 768, is_float};
      EXPECT_EQ(shape_of(problem_of(shape, 8, PackedTiling::kWords)), shape) << format.tag;
    }
  EXPECT_FALSE(shape_of({.op = "attention", .dtypes = "f32", .layout = "rows"}).has_value());
}

template <class Variant>
std::set<std::string> names(std::span<const Variant> variants) {
  std::set<std::string> all;
  for (const Variant& v : variants) all.insert(std::string(v.name));
  return all;
}

// Every variant of every table can be pinned: the list of names against the tables themselves.
TEST(Pins, NameEveryVariantOfEveryTable) {
  std::map<std::string, std::set<std::string>> tables = {
      {"packed_product", names(packed_variants())},
      {"block_product", names(block_product_variants())},
      {"dense_product", names(dense_product_variants())},
      {"rms_norm", names(rms_norm_variants())},
      {"rope", names(rope_variants())},
      {"kv_store", names(kv_store_variants())},
      {"attention", names(attention_variants())},
      {"swiglu", names(swiglu_variants())},
      {"elementwise", names(elementwise_variants())}};
  tables["dense_product"].insert("openblas");
  std::map<std::string, std::set<std::string>> pinnable;
  for (const backend::Pinnable& op : pinnable_kernels())
    for (std::string_view v : op.variants) pinnable[std::string(op.op)].insert(std::string(v));
  EXPECT_EQ(pinnable, tables);
}

// On any machine: an eligible one takes effect, another one warns.
TEST(Pins, TakeEffectOrWarn) {
  for (const CpuFeatures have : {kAvx512, kAvx2, CpuFeatures{}}) {
    const backend::DeviceProfile p = profile(have, have == CpuFeatures{} ? "" : kSkylake);
    for (const backend::Pinnable& op : pinnable_kernels()) {
      for (std::string_view variant : op.variants) {
        const std::vector<std::string> texts = {fmt::format("{}:{}", op.op, variant)};
        const std::vector<backend::Pin> pins = backend::parse_pins(texts).value();
        const ChoiceContext context{rates_of(p), nullptr, pins};
        std::vector<std::string> warnings;
        const KernelSet set = choose_kernels(have, context, warnings).value();
        ProductRules r = rules(p);
        r.tiling = packed_tiling(have, texts);
        r.writes_tables = set.packed.variant->needs != CpuFeatures{};
        std::set<std::string> used = {"packed_product:" + std::string(set.packed.name()),
                                      "block_product:" + std::string(set.block.name()),
                                      "rms_norm:" + std::string(set.rms_norm.name()),
                                      "rope:" + std::string(set.rope.name()),
                                      "kv_store:" + std::string(set.kv_store.name()),
                                      "attention:" + std::string(set.attention.name()),
                                      "swiglu:" + std::string(set.swiglu.name()),
                                      "elementwise:" + std::string(set.elementwise.name())};
        for (const ProductShape& shape : {ProductShape{Format::kF16, 512, 512, true},
                                          ProductShape{Format::kQ1G128, 512, 512, false},
                                          ProductShape{Format::kQ4_1, 512, 512, false}}) {
          std::set<std::string> by_rows;
          const auto kernels = choose_product(shape, 64, r, context, warnings).value();
          for (const ProductKernel& k : kernels)
            by_rows.insert(fmt::format("{}:{}", product_op(shape.format), k.variant.name));
          if (by_rows.size() == 1) used.insert(*by_rows.begin());
        }
        const bool warned = !warnings.empty();
        EXPECT_NE(used.count(texts[0]) == 1, warned) << texts[0] << " on " << to_string(have);
        if (warned) {
          EXPECT_THAT(warnings[0], HasSubstr("--pin " + texts[0] + " cannot be followed"));
        }
      }
    }
  }
}

TEST(Pins, APackedKernelDecidesTheTilingThatItReads) {
  EXPECT_EQ(packed_tiling(kAvx512, {}), PackedTiling::kWords);
  const std::vector<std::string> lut = {"packed_product:lut"};
  EXPECT_EQ(packed_tiling(kAvx512, lut), PackedTiling::kBytes);
  const std::vector<std::string> reference = {"packed_product:reference"};
  EXPECT_EQ(packed_tiling(kAvx512, reference), PackedTiling::kWords) << "reads both";
  const std::vector<std::string> absent = {"packed_product:lut512"};
  EXPECT_EQ(packed_tiling(kAvx2, absent), PackedTiling::kBytes);
  const std::vector<std::string> nonsense = {"packed_product", ":", "x:y"};
  EXPECT_EQ(packed_tiling(kAvx2, nonsense), PackedTiling::kBytes);
}

TEST(Scratch, ComesFromTheBridgeAndIsZeroWhereNothingIsWidened) {
  EXPECT_EQ(vendor_workspace({Format::kF32, 49152, 576, true}, 512, false, false, 2).value(), 0u);
  const std::uint64_t half =
      vendor_workspace({Format::kF16, 49152, 576, true}, 512, false, false, 2).value();
  EXPECT_GT(half, 0u);
  EXPECT_LE(half, std::uint64_t{2} * 16 << 20);
  EXPECT_EQ(vendor_workspace({Format::kF16, 49152, 576, true}, 512, false, false, 4).value(),
            2 * half);
}

}  // namespace
}  // namespace tern::cpu
