// Products of MPS through the vendor bridge against sums in double, with poisoned memory and
// guards.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "backend/vendor_gemm_test_problem.h"
#include "swmetal/swmetal.h"
#include "tests/parity/metal/vendor_rig.h"

namespace tern::metal_tests {
namespace {

using backend::Activation;
using backend::test::GemmCase;
using backend::test::TestProblem;

class MpsVendor : public testing::Test {
 protected:
  void SetUp() override {
    swm_reset();
    rig_ = VendorRig::open();
  }
  void expect_right(const GemmCase& c) {
    TestProblem problem(c);
    const auto run = rig_->run(problem.problem);
    ASSERT_TRUE(run.ok()) << c.text() << ": " << run.error().message();
    EXPECT_TRUE(problem.is_right());
  }
  std::unique_ptr<VendorRig> rig_;
};

TEST_F(MpsVendor, BothTypesEachTransposeRaggedShapes) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const std::uint64_t m : {1U, 16U, 33U})
          for (const std::uint64_t padding : {0U, 3U}) {
            GemmCase c;
            c.m = m;
            c.n = 19;
            c.k = 40;
            c.a = c.b = c.d = dtype;
            c.is_a_transposed = ta;
            c.is_b_transposed = tb;
            c.padding = padding;
            expect_right(c);
          }
}

TEST_F(MpsVendor, Br18_RaggedEdgesOfTilesKeepTheirGuards) {
  for (const auto& [m, k, n] : {std::array{16U, 768U, 230U},
                                {16U, 760U, 230U},
                                {40U, 768U, 228U},
                                {8U, 72U, 40U},
                                {16U, 1536U, 204U}}) {
    GemmCase c;
    c.m = m;
    c.k = k;
    c.n = n;
    c.is_b_transposed = true;
    expect_right(c);
  }
}

TEST_F(MpsVendor, ScalarsAndNoProductAtAll) {
  for (const float alpha : {1.0F, -0.5F, 0.0F})
    for (const float beta : {0.0F, 1.0F, 0.75F})
      for (const bool is_c_apart : {false, true})
        for (const std::uint64_t k : {0U, 24U}) {
          GemmCase c;
          c.m = 5;
          c.n = 7;
          c.k = k;
          c.alpha = alpha;
          c.beta = beta;
          c.is_c_apart = is_c_apart;
          expect_right(c);
        }
}

TEST_F(MpsVendor, EpiloguesInOneKernelOfOurs) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16})
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kSilu,
                                        Activation::kGeluErf, Activation::kGeluTanh}) {
      GemmCase c;
      c.m = 9;
      c.n = 21;
      c.k = 32;
      c.a = c.b = c.d = dtype;
      c.has_bias = true;
      c.activation = activation;
      c.padding = 2;
      expect_right(c);
      c.beta = 0.5F;
      c.is_c_apart = true;
      c.has_bias = false;
      expect_right(c);
    }
}

TEST_F(MpsVendor, MixedTypesAreWidenedOnTheWay) {
  for (const bool tb : {false, true}) {
    GemmCase c;
    c.m = 6;
    c.n = 11;
    c.k = 48;
    c.b = Dtype::kF16;
    c.is_b_transposed = tb;
    c.padding = 1;
    expect_right(c);
    c.b = Dtype::kF32;
    c.a = Dtype::kF16;
    expect_right(c);
  }
}

TEST_F(MpsVendor, BatchesWholeRaggedRepeatedAndInterleaved) {
  for (const std::uint64_t padding : {0U, 5U})
    for (const bool repeats_b : {false, true})
      for (const bool is_interleaved : {false, true}) {
        GemmCase c;
        c.m = 4;
        c.n = 6;
        c.k = 20;
        c.batch = 3;
        c.padding = padding;
        c.repeats_b = repeats_b;
        c.is_interleaved = is_interleaved;
        expect_right(c);
      }
}

TEST_F(MpsVendor, Br57_OneArenaGivesTheBytesOfThreeAllocations) {
  GemmCase c;
  c.m = 8;
  c.n = 12;
  c.k = 40;
  TestProblem apart(c);
  c.is_one_arena = true;
  TestProblem together(c);
  ASSERT_TRUE(rig_->run(apart.problem).ok());
  ASSERT_TRUE(rig_->run(together.problem).ok());
  EXPECT_TRUE(together.is_right());
  EXPECT_EQ(apart.result(), together.result());
}

// MPS has no bf16: operands are widened and the result is rounded by kernels of ours.
TEST_F(MpsVendor, Br21_Bf16IsWidenedAndNeverTakenForHalf) {
  for (const Dtype d : {Dtype::kBf16, Dtype::kF32}) {
    GemmCase c;
    c.m = 7;
    c.n = 13;
    c.k = 40;
    c.a = c.b = Dtype::kBf16;
    c.d = d;
    c.padding = 1;
    expect_right(c);
    c.has_bias = true;
    c.bias = d;
    expect_right(c);
    c.a = Dtype::kF32;
    expect_right(c);
  }
}

TEST_F(MpsVendor, IntegersAreRefusedByName) {
  TestProblem problem(GemmCase{});
  problem.problem.a.dtype = Dtype::kI32;
  const auto run = rig_->run(problem.problem);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(run.error().message().find("i32"), std::string::npos) << run.error().message();
}

// The fake framework aborts where a vendor's product meets an open encoder.
TEST_F(MpsVendor, Br06_OurEncoderHasEndedBeforeAVendorCall) {
  GemmCase c;
  c.m = 5;
  c.n = 9;
  c.k = 16;
  TestProblem problem(c);
  const ProductRun run = rig_->run(problem.problem, 3, 2).value();
  EXPECT_TRUE(problem.is_right());
  EXPECT_EQ(run.encoders, 4) << "own, product, own, product, own, product, own";
  TestProblem again(c);
  EXPECT_EQ(rig_->run(again.problem, 3, 0).value().encoders, 0)
      << "products in a row need no encoder of ours";
}

TEST_F(MpsVendor, Br03_ManyThreadsOnOneShapeAndOnTheirOwn) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([this, t] {
      for (unsigned i = 0; i < 4; ++i) {
        GemmCase c;
        c.m = 12;
        c.n = i % 2 == 0 ? 10 : 10 + t;
        c.k = 64;
        c.seed = t * 10 + i;
        TestProblem problem(c);
        const auto run = rig_->run(problem.problem);
        EXPECT_TRUE(run.ok());
        EXPECT_TRUE(problem.is_right());
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(rig_->bridge().counts().kernels_in_use, 0U);
}

TEST_F(MpsVendor, Br08_AFailedSubmissionLeavesTheBridgeInOrder) {
  GemmCase c;
  c.k = 32;
  TestProblem problem(c);
  swm_fail_nth(SWM_COMMIT, 1);
  EXPECT_FALSE(rig_->run(problem.problem).ok());
  EXPECT_TRUE(rig_->run(problem.problem).ok());
  EXPECT_TRUE(problem.is_right());
  EXPECT_EQ(rig_->bridge().counts().kernels_in_use, 0U);
  rig_->bridge().reset();
  EXPECT_EQ(rig_->bridge().counts().views, 0U);
  problem.restore();
  EXPECT_TRUE(rig_->run(problem.problem).ok());
  EXPECT_TRUE(problem.is_right());
}

}  // namespace
}  // namespace tern::metal_tests
