// The CPU device through the backend interface: batches of several sequences, drafts, cancels,
// deadlines.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>

#include "backend/registry.h"
#include "base/allocation_counter_test.h"
#include "program/builder.h"
#include "program/passes/passes.h"
#include "quant/codec.h"

namespace tern::backend {
namespace {

using program::BatchBlock;
using program::BatchSequence;
using quant::Format;

constexpr int kHidden = 128;
constexpr int kVocabulary = 96;
constexpr int kPages = 16;

// A one-layer model with random Q1 matrices: embed, attention with rope, head.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937 random(5);
    const auto add = [&](const char* name, Format format, std::int64_t rows, std::int64_t inputs,
                         std::uint8_t uses) {
      auto& bytes = storage_.emplace_back(
          quant::bytes_for(format, static_cast<std::uint64_t>(rows * inputs)));
      for (std::byte& b : bytes) b = static_cast<std::byte>(random());
      if (format == Format::kQ1G128)
        for (std::size_t i = 0; i < bytes.size(); i += 18) {
          bytes[i] = std::byte{0x00};
          bytes[i + 1] = std::byte{0x2c};  // 0.0625
        }
      if (format == Format::kF32) {
        const float one = 1;
        for (std::size_t i = 0; i < bytes.size(); i += 4) std::memcpy(&bytes[i], &one, 4);
      }
      return set_.add({name,
                       format,
                       rows,
                       inputs,
                       uses,
                       {{name, bytes, uses == program::kUseVector ? 1 : rows}}});
    };
    storage_.reserve(8);
    const auto table = add("table", Format::kQ1G128, kVocabulary, kHidden,
                           program::kUseLookup | program::kUseMatmul);
    const auto norm = add("norm", Format::kF32, 1, kHidden, program::kUseVector);
    const auto qkv = add("qkv", Format::kQ1G128, 3 * kHidden, kHidden, program::kUseMatmul);
    const auto out = add("out", Format::kQ1G128, kHidden, kHidden, program::kUseMatmul);
    program::Builder b("test", {16, kPages * 32}, 8, set_);
    b.region("layer", 0);
    const auto rope = b.rope_table({{1.0, 0.3, 0.1, 0.03}, 1.0});
    const auto kv = b.kv_state({"kv", 2, 64, program::KvDtype::kF32, program::KvDtype::kF32});
    const auto x = b.embed(table);
    const auto all = b.linear(b.rms_norm(x, norm, 1e-6F), qkv);
    const auto q = b.rope(b.slice(all, 0, kHidden), 64, rope, program::RopePairs::kHalves);
    const auto k = b.rope(b.slice(all, kHidden, kHidden), 64, rope, program::RopePairs::kHalves);
    b.kv_store(kv, k, b.slice(all, 2 * kHidden, kHidden));
    const auto y = b.add(x, b.linear(b.attention(q, kv, 2, 0.125F), out));
    b.region("head");
    b.output("logits", b.linear(b.gather_rows(y), table));
    const program::Program p =
        program::run_passes(std::move(b).finish(), program::Activations::kI12);
    backend_ = make_backend("cpu").value();
    DeviceProfile profile = backend_->devices().front();
    profile.cores = 2;
    device_ = backend_->open(profile).value();
    PlanOptions options;
    options.limits = {16, 4, 8, kPages};
    plan_ = backend_->plan(p, profile, options).value();
    weights_ = device_->upload(set_, {}, {}).value();
    states_ = device_->make_states(p.states, {.pages = kPages, .slots = 0}).value();
    executable_ = device_->load(plan_, weights_, states_).value();
  }

  // Appends `ids` of a sequence with `length` committed positions that owns `pages`.
  static void add(BatchBlock& b, const std::vector<std::int32_t>& ids, std::uint32_t length,
                  const std::vector<std::uint32_t>& pages) {
    BatchSequence s;
    s.row_count = static_cast<std::uint32_t>(ids.size());
    s.kv_length = length;
    s.page_count = static_cast<std::uint32_t>(pages.size());
    b.add_sequence(s, ids.data(), pages.data());
  }

  std::vector<std::vector<float>> run(const BatchBlock& b) {
    const Submission s = device_->submit(*executable_, b, {}).value();
    device_->wait(*executable_, s, kNoDeadline).value();
    std::vector<std::vector<float>> rows;
    const OutputRows out = device_->output(*executable_, s, 0).value();
    for (std::int64_t r = 0; r < out.rows; ++r)
      rows.emplace_back(out.row(r).begin(), out.row(r).end());
    return rows;
  }

  std::vector<std::vector<std::byte>> storage_;
  program::WeightSet set_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const ResidentWeights> weights_;
  std::shared_ptr<StatePool> states_;
  std::unique_ptr<Executable> executable_;
};

TEST_F(DeviceTest, PrefillOfTwoPromptsOfDifferentLengthInOneStepEqualsEachAlone) {
  const std::vector<std::int32_t> first = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<std::int32_t> second = {70, 71};
  BatchBlock both;
  add(both, first, 0, {3});
  add(both, second, 0, {7});
  both.output_rows = {8, 10};
  const auto together = run(both);
  BatchBlock alone;
  add(alone, first, 0, {1});
  alone.output_rows = {8};
  EXPECT_EQ(run(alone)[0], together[0]);
  alone.clear();
  add(alone, second, 0, {0});
  alone.output_rows = {1};
  EXPECT_EQ(run(alone)[0], together[1]);
}

TEST_F(DeviceTest, RejectedDraftRowsLeaveNoTrace) {
  BatchBlock b;
  add(b, {10, 11, 12}, 0, {0, 1});
  b.output_rows = {2};
  (void)run(b);  // committed: 3 positions
  b.clear();
  add(b, {20, 21, 22, 23}, 3, {0, 1});  // four draft rows
  b.output_rows = {0, 1, 2, 3};
  const auto verified = run(b);
  // Rows 20 and 21 are kept, 22 and 23 rejected: the next step starts at 5.
  b.clear();
  add(b, {30}, 5, {0, 1});
  b.output_rows = {0};
  const auto after = run(b);
  // The same sequence without any draft.
  b.clear();
  add(b, {10, 11, 12, 20, 21, 30}, 0, {2, 3});
  b.output_rows = {4, 5};
  const auto plain = run(b);
  EXPECT_EQ(verified[1], plain[0]);
  EXPECT_EQ(after[0], plain[1]);
}

TEST_F(DeviceTest, AStepThatIsCancelledCanBeRunAgain) {
  BatchBlock b;
  add(b, {1, 2, 3}, 0, {0});
  b.output_rows = {2};
  const CancelToken cancel = CancelToken::make();
  const Submission s = device_->submit(*executable_, b, cancel).value();
  cancel.request();  // the step may have ended by now, on the driver's thread
  const Result<void> ended = device_->wait(*executable_, s, kNoDeadline);
  EXPECT_TRUE(ended.ok() || ended.error().code() == ErrorCode::kCancelled);
  // A token that is tripped already is not even queued.
  const auto refused = device_->submit(*executable_, b, cancel);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kCancelled);
  const auto again = run(b);
  BatchBlock fresh;
  add(fresh, {1, 2, 3}, 0, {5});
  fresh.output_rows = {2};
  EXPECT_EQ(run(fresh)[0], again[0]);
}

TEST_F(DeviceTest, SubmitReturnsAtOnceAndADeadlineEndsTheWaitOnly) {
  BatchBlock b;
  add(b, std::vector<std::int32_t>(16, 9), 0, {0});
  b.output_rows = {15};
  for (int i = 0; i < 20; ++i) {
    const Submission s = device_->submit(*executable_, b, {}).value();
    Result<void> waited = device_->wait(*executable_, s, std::chrono::steady_clock::now());
    while (!waited.ok()) {
      ASSERT_EQ(waited.error().code(), ErrorCode::kDeadline);
      waited = device_->wait(*executable_, s,
                             std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
    }
    EXPECT_EQ(device_->output(*executable_, s, 0).value().rows, 1);
  }
}

TEST_F(DeviceTest, RefusesBlocksWhoseIndicesPointNowhere) {
  const auto refused = [this](const BatchBlock& b) {
    const auto s = device_->submit(*executable_, b, {});
    return !s.ok() && s.error().code() == ErrorCode::kInvalidArgument;
  };
  BatchBlock good;
  add(good, {1, 2}, 0, {0});
  good.output_rows = {1};
  BatchBlock bad = good;
  bad.ids[1] = kVocabulary;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.ids[0] = -1;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.pages[0] = kPages;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.output_rows = {2};
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.sequences[0].kv_length = 31;  // position 32 has no page
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.sequences[0].row_count = 1;
  EXPECT_TRUE(refused(bad));
  EXPECT_TRUE(refused({}));
  EXPECT_FALSE(refused(good));
}

TEST_F(DeviceTest, AStepAllocatesNothing) {
  BatchBlock b;
  b.reserve({16, 4, 8, kPages});
  const std::vector<std::uint32_t> pages = {0, 1, 2};
  const std::int32_t id = 4;
  const auto step = [&](std::uint32_t position) {
    b.clear();
    BatchSequence s;
    s.row_count = 1;
    s.kv_length = position;
    s.page_count = 3;
    b.add_sequence(s, &id, pages.data());
    b.output_rows.push_back(0);
    const Submission ticket = device_->submit(*executable_, b, {}).value();
    device_->wait(*executable_, ticket, kNoDeadline).value();
  };
  for (std::uint32_t p = 0; p < 4; ++p) step(p);
  const long before = allocations_so_far();
  for (std::uint32_t p = 4; p < 80; ++p) step(p);
  EXPECT_EQ(allocations_so_far(), before);
}

TEST_F(DeviceTest, PlansForAMachineThatNobodyHasHere) {
  DeviceProfile other;
  other.name = "old laptop";
  other.architecture = "x86-64";
  other.cores = 4;  // and no AVX2
  const auto plan = backend_->plan(plan_->program, other, {.limits = plan_->limits}).value();
  EXPECT_EQ(plan->steps.size(), plan_->program.ops.size());
  EXPECT_FALSE(plan->warnings.empty());
  for (const PlanStep& step : plan->steps)
    EXPECT_EQ(step.kernel.find("avx"), std::string::npos) << step.kernel;
  // It cannot be loaded here, since it was made for another processor.
  EXPECT_FALSE(device_->load(plan, weights_, states_).ok());
}

TEST_F(DeviceTest, RefusesHeadsThatNoKernelTakes) {
  const auto planned = [this](std::int64_t head_dim) {
    program::WeightSet set;
    const auto table =
        set.add({"table", Format::kQ1G128, kVocabulary, 512, program::kUseLookup, {}});
    const auto q = set.add({"q", Format::kQ1G128, head_dim, 512, program::kUseMatmul, {}});
    program::Builder b("wide", {16, kPages * 32}, 8, set);
    const auto kv = b.kv_state({"kv", 1, head_dim, program::KvDtype::kF32, program::KvDtype::kF32});
    const auto x = b.linear(b.embed(table), q);
    b.kv_store(kv, x, x);
    b.output("logits", b.gather_rows(b.attention(x, kv, 1, 0.125F)));
    const program::Program p =
        program::run_passes(std::move(b).finish(), program::Activations::kI12);
    return backend_->plan(p, device_->profile(), {.limits = {16, 4, 8, kPages}});
  };
  EXPECT_TRUE(planned(512).ok());
  const auto refused = planned(514);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message().find("heads of 514 values"), std::string::npos)
      << refused.error().message();
}

TEST_F(DeviceTest, NeverEstimatesLessThanTheWeightsTake) {
  for (const Format format : {Format::kT2G64, Format::kT2G128, Format::kT2G256, Format::kQ1G128,
                              Format::kT1G256, Format::kQ8_0}) {
    for (const int code : {0x00, 0xff}) {  // codes 0 alone, or code 3
      std::vector<std::byte> bytes(quant::bytes_for(format, 96 * 512),
                                   static_cast<std::byte>(code));
      const std::vector<float> zeros(512, 0.5F);
      const auto row = bytes.size() / 96;
      for (std::size_t r = 0; r < 96; ++r)  // finite scales everywhere
        quant::encode_row(format, zeros.data(), 512, &bytes[r * row]).value();
      if (code == 0xff && quant::info(format).tag.starts_with("t2")) bytes[5] = std::byte{0xff};
      program::WeightSet set;
      set.add({"w", format, 96, 512, program::kUseMatmul, {{"w", bytes, 96}}});
      const auto weights = device_->upload(set, {}, {});
      ASSERT_TRUE(weights.ok()) << weights.error().message();
      EXPECT_GE(backend_->estimate(set, device_->profile()).bytes, (*weights)->bytes())
          << quant::info(format).tag << " " << code;
    }
  }
}

TEST_F(DeviceTest, CountsBothPassesOverTwoBitWeightsInOneProgress) {
  std::vector<std::byte> bytes(quant::bytes_for(Format::kT2G64, 96 * 512), std::byte{0x11});
  program::WeightSet set;
  set.add({"w", Format::kT2G64, 96, 512, program::kUseMatmul, {{"w", bytes, 96}}});
  int released = 0;
  set.release = [&](std::span<const std::byte>) { ++released; };
  std::vector<Progress> reports;
  std::vector<std::string> names;
  const auto progress = [&](const Progress& p) {
    EXPECT_TRUE(released == 0 || p.finished) << "the pages are read again";
    reports.push_back(p);
    names.emplace_back(p.what);
  };
  (void)device_->upload(set, progress, {}).value();
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(released, 1);
  EXPECT_TRUE(reports.back().finished);
  EXPECT_EQ(reports.back().total, 2 * bytes.size());
  EXPECT_EQ(reports.back().done, 2 * bytes.size());
  for (const std::string& name : names) EXPECT_EQ(name, "repacking weights");
}

TEST_F(DeviceTest, SaysThatPackedProductsAreExactWithoutAsking) {
  PlanOptions options;
  options.limits = plan_->limits;
  for (const bool exact : {false, true}) {
    options.exact = exact;
    const auto plan = backend_->plan(plan_->program, device_->profile(), options).value();
    for (const PlanStep& step : plan->steps) {
      const bool is_product =
          std::holds_alternative<program::Linear>(plan->program.ops[step.first_op].kind);
      EXPECT_EQ(step.reason.find("exact at every number of rows") != std::string::npos, is_product)
          << step.kernel << ": " << step.reason;
    }
    for (std::size_t i = 0; i < plan->steps.size(); ++i)
      EXPECT_EQ(plan->steps[i].kernel, plan_->steps[i].kernel);
  }
}

TEST_F(DeviceTest, PinsChooseAVariantAndUnknownOnesAreRefused) {
  PlanOptions options;
  options.limits = plan_->limits;
  options.pins = {"packed_product:reference"};
  const auto pinned = backend_->plan(plan_->program, device_->profile(), options).value();
  bool is_pinned = false;
  for (const PlanStep& step : pinned->steps)
    is_pinned = is_pinned || step.kernel.find("packed_product:reference") == 0;
  EXPECT_TRUE(is_pinned);
  auto slow = device_->load(pinned, weights_, states_).value();
  BatchBlock b;
  add(b, {1, 2, 3}, 0, {0});
  b.output_rows = {2};
  const auto fast_rows = run(b);
  std::swap(executable_, slow);
  EXPECT_EQ(run(b)[0], fast_rows[0]);  // exact: every variant gives the same bits
  options.pins = {"packed_product:warp9"};
  EXPECT_FALSE(backend_->plan(plan_->program, device_->profile(), options).ok());
  options.pins = {"teleport:lut"};
  EXPECT_FALSE(backend_->plan(plan_->program, device_->profile(), options).ok());
}

}  // namespace
}  // namespace tern::backend
