// Plans for a machine that is not here, layouts and launches: no device is needed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backend/metal/device/embedded.h"
#include "backend/metal/metal_backend.h"
#include "backend/metal/plan/metal_plan.h"
#include "backend/profile_file.h"
#include "program/builder.h"
#include "program/passes/passes.h"

namespace tern::metal {
namespace {

using quant::Format;

struct Model {
  program::WeightSet set;
  program::WeightId table =
      set.add({"table", Format::kQ1G128, 100, 256, program::kUseLookup | program::kUseMatmul, {}});
  program::WeightId norm = set.add({"norm", Format::kF32, 1, 256, program::kUseVector, {}});
  program::WeightId wide = set.add({"wide", Format::kQ1G128, 256, 256, program::kUseMatmul, {}});
  program::WeightId ternary =
      set.add({"ternary", Format::kT2G128, 256, 256, program::kUseMatmul, {}});

  [[nodiscard]] program::Program program(program::WeightId matrix,
                                         program::Activations activations) const {
    program::Builder b("small", {4, 1024}, 2, set);
    b.region("layer", 3);
    const auto x = b.embed(table);
    const auto y = b.add(x, b.linear(b.rms_norm(x, norm, 1e-6F), matrix));
    b.region("head");
    b.output("logits", b.linear(b.gather_rows(y), table));
    return program::run_passes(std::move(b).finish(), activations);
  }
  [[nodiscard]] static Result<std::shared_ptr<const backend::Plan>> plan(
      const program::Program& program, const backend::PlanOptions& options = {}) {
    return MetalBackend().plan(program, backend::find_profile("m4-pro").value(), options);
  }
};

TEST(MetalPlan, TheSmallProgramIsPlannedWithoutADevice) {
  const Model m;
  backend::PlanOptions options;
  options.limits = {4, 2, 2, 4};
  const auto plan = Model::plan(m.program(m.wide, program::Activations::kI12), options).value();
  std::vector<std::string> kernels;
  for (const backend::PlanStep& step : plan->steps) kernels.push_back(step.kernel);
  const std::vector<std::string> expected = {
      "embed:q1_g128",    "rms_norm:group",    "quantize:integers",     "gemv_q1_g128:simdgroup",
      "gather_rows:copy", "quantize:integers", "gemv_q1_g128:simdgroup"};
  EXPECT_EQ(kernels, expected);
  EXPECT_EQ(plan->profile.name, "m4-pro");
  EXPECT_GT(plan->arena_bytes, 0U);
  EXPECT_EQ(plan->scratch_bytes, 0U);
  for (const backend::Placement& place : plan->placements)
    EXPECT_LE(place.offset + place.bytes, plan->arena_bytes);
}

TEST(MetalPlan, WhatHasNoKernelIsRefusedByOpAndShape) {
  const Model m;
  const auto ternary = Model::plan(m.program(m.ternary, program::Activations::kI12));
  ASSERT_FALSE(ternary.ok());
  EXPECT_EQ(ternary.error().code(), ErrorCode::kUnsupported);
  const std::string& text = ternary.error().message();
  EXPECT_NE(text.find("linear in layer 3"), std::string::npos) << text;
  EXPECT_NE(text.find("256"), std::string::npos) << text;
  EXPECT_NE(text.find("only weights of format q1_g128"), std::string::npos) << text;
  const auto floats = Model::plan(m.program(m.wide, program::Activations::kF32));
  ASSERT_FALSE(floats.ok());
  EXPECT_NE(floats.error().message().find("float rows"), std::string::npos);
}

TEST(MetalPlan, Br23_PinsAreCheckedAgainstTheTable) {
  const Model m;
  const program::Program p = m.program(m.wide, program::Activations::kI12);
  backend::PlanOptions options;
  options.limits = {4, 2, 2, 4};
  options.pins = {"gemv_q1_g128:simdgroup"};
  EXPECT_EQ(Model::plan(p, options).value()->steps[3].reason, "pinned");
  options.pins = {"gemv_q1_g128:b1_mma"};
  EXPECT_EQ(Model::plan(p, options).error().code(), ErrorCode::kUsage);
}

TEST(MetalPlan, FamiliesAreReadFromNames) {
  EXPECT_EQ(family_number("apple9"), 9);
  EXPECT_EQ(family_number("apple10"), 10);
  EXPECT_EQ(family_number("apple9x"), 0);
  EXPECT_EQ(family_number("sm_90"), 0);
}

TEST(MetalPlan, WeightsTakeWhatTheFileHasRoundedUp) {
  const Model m;
  const auto estimate = MetalBackend().estimate(m.set, {});
  EXPECT_EQ(estimate.layouts,
            (std::vector<std::string>{"split q1_g128", "vector f32", "split q1_g128", "none"}));
  EXPECT_EQ(estimate.bytes, 3840U + 1024U + 9216U);  // 100 x 2 x 18 is 3,600
}

TEST(MetalLayout, SplitKeepsEveryBitAndNamesABadScale) {
  std::vector<std::byte> blocks(6 * 18);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i * 7 % 61);
  std::vector<std::byte> weight(split_bytes(3, 256), std::byte{0xEE});
  ASSERT_EQ(weight.size(), blocks.size());
  EXPECT_EQ(repack_split(blocks.data(), 0, 2, 6, weight.data()), -1);
  EXPECT_EQ(repack_split(blocks.data() + 2 * 18, 2, 4, 6, weight.data()), -1);
  for (std::size_t b = 0; b < 6; ++b) {
    EXPECT_EQ(std::memcmp(&weight[b * 16], &blocks[b * 18 + 2], 16), 0);
    EXPECT_EQ(std::memcmp(&weight[96 + b * 2], &blocks[b * 18], 2), 0);
  }
  const std::uint16_t nan = 0x7E00;
  std::memcpy(&blocks[4 * 18], &nan, 2);
  EXPECT_EQ(repack_split(blocks.data() + 3 * 18, 3, 3, 6, weight.data()), 1);
}

TEST(MetalLayout, RecordsHoldWholeGroups) {
  EXPECT_EQ(record_layout(1).scales_offset, 256U);
  EXPECT_EQ(record_layout(128).record_bytes, 512U);
  EXPECT_EQ(record_layout(129).scales_offset, 512U);
  EXPECT_EQ(record_layout(4096).record_bytes, (32U * 256 + 32 * 8 + 255) / 256 * 256);
}

TEST(MetalSources, IncludesComeInOnceAndInPlace) {
  const EmbeddedSource table[] = {
      {"a.metal", "#include <metal_stdlib>\n#include \"b.h\"\n#include \"c.h\"\na\n"},
      {"b.h", "#pragma once\n#include \"c.h\"\nb\n"},
      {"c.h", "#pragma once\nc"}};
  EXPECT_EQ(flatten_source("a.metal", table).value(), "#include <metal_stdlib>\nc\nb\na\n");
  const EmbeddedSource lacking[] = {{"a.metal", "#include \"z.h\"\n"}};
  const auto refused = flatten_source("a.metal", lacking);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("a.metal includes z.h"), std::string::npos);
}

TEST(MetalKernelTable, RowsStandAtTheirNumbers) {
  for (std::size_t i = 0; i < kKernels.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kKernels[i].id), i);
    EXPECT_LE(kKernels[i].params_bytes, Launch::kParamsBytes);
    EXPECT_EQ(kKernels[i].params_bytes % 8, 0U);
  }
}

}  // namespace
}  // namespace tern::metal
