// Values of products through the bridge: forms, dtypes, strides, batches, epilogues, and the rows
// of gpu-layer B.9 that speak of shapes and memory.
#include "backend/gpu/vendor/bridge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <random>

#include "backend/gpu/vendor/fake_vendor_test.h"
#include "backend/vendor_gemm_test_problem.h"

namespace tern::gpu {
namespace {

using backend::Activation;
using backend::GemmPlan;
using backend::test::GemmCase;
using backend::test::TestProblem;
using test::FakeContext;
using test::FakeVendor;
using test::Step;
using testing::HasSubstr;

constexpr std::uint64_t kGib = std::uint64_t{1} << 30;

// A vendor, a bridge and a way to run one product to its end.
struct Rig {
  explicit Rig(const BridgeBounds& bounds = {}, std::uint64_t device = 1)
      : vendor(std::make_shared<FakeVendor>(device)),
        threads(std::make_shared<ActiveThreads>()),
        bridge(make_vendor_bridge(vendor, threads, bounds)) {}

  testing::AssertionResult run(TestProblem& problem) {
    const Result<GemmPlan> plan = bridge->plan(problem.problem);
    if (!plan.ok()) return testing::AssertionFailure() << plan.error().message();
    FakeContext context(vendor->device(), plan->workspace_bytes);
    const Result<void> encoded = bridge->encode(*plan, context);
    if (!encoded.ok()) return testing::AssertionFailure() << encoded.error().message();
    if (context.overlaps() != 0) return testing::AssertionFailure() << "an encoder was open";
    context.complete().value();
    if (vendor->violations() != 0) return testing::AssertionFailure() << "violations";
    return problem.is_right();
  }

  std::shared_ptr<FakeVendor> vendor;
  std::shared_ptr<ActiveThreads> threads;
  std::unique_ptr<VendorBridge> bridge;
};

testing::AssertionResult runs(const GemmCase& c) {
  Rig rig;
  TestProblem problem(c);
  return rig.run(problem);
}

TEST(VendorBridge, W13_W16_FormsStridesAndScalars) {
  for (const bool at : {false, true}) {
    for (const bool bt : {false, true}) {
      for (const float beta : {0.0f, 1.0f, -0.5f}) {
        EXPECT_TRUE(runs({.m = 5,
                          .n = 7,
                          .k = 9,
                          .is_a_transposed = at,
                          .is_b_transposed = bt,
                          .padding = 3,
                          .alpha = 0.75f,
                          .beta = beta}));
        EXPECT_TRUE(runs({.m = 5,
                          .n = 7,
                          .k = 9,
                          .is_a_transposed = at,
                          .is_b_transposed = bt,
                          .padding = 3,
                          .alpha = -2.0f,
                          .beta = beta,
                          .is_c_apart = true}));
      }
    }
  }
}

TEST(VendorBridge, W15_AllPairsOfDtypesByConversionOnly) {
  const std::array dtypes = {Dtype::kF32, Dtype::kF16, Dtype::kBf16};
  for (const Dtype a : dtypes) {
    for (const Dtype b : dtypes) {
      for (const Dtype d : dtypes) {
        Rig rig;
        TestProblem problem({.m = 5,
                             .n = 6,
                             .k = 7,
                             .a = a,
                             .b = b,
                             .d = d,
                             .is_b_transposed = true,
                             .batch = 2,
                             .padding = 1});
        EXPECT_TRUE(rig.run(problem));
        const GemmPlan plan = rig.bridge->plan(problem.problem).value();
        EXPECT_EQ(plan.conversions.size(), a == b                                         ? 0u
                                           : (a == Dtype::kF32) + (b == Dtype::kF32) == 1 ? 1u
                                                                                          : 2u);
        for (const backend::Conversion& conversion : plan.conversions) {
          EXPECT_EQ(conversion.to, Dtype::kF32);
          EXPECT_EQ(conversion.elements,
                    conversion.operand == backend::OperandName::kA ? 2 * 5 * 7u : 2 * 6 * 7u);
        }
      }
    }
  }
}

TEST(VendorBridge, Br17_B5_NothingOldIsReadAndNothingElseIsWritten) {
  // D and all gaps are NaN before; beta = 0 must not let any of it through.
  EXPECT_TRUE(runs({.m = 6, .n = 5, .k = 4, .batch = 2, .padding = 5}));
  // k = 0 and alpha = 0: act(beta C + bias), with A and B never read (they are NaN or absent).
  for (const float beta : {0.0f, 2.0f}) {
    EXPECT_TRUE(runs(
        {.m = 3, .n = 4, .k = 0, .beta = beta, .has_bias = true, .activation = Activation::kRelu}));
    TestProblem poisoned({.m = 3, .n = 4, .k = 5, .alpha = 0, .beta = beta, .has_bias = true});
    poisoned.problem.a.memory = backend::test::poisoned(1, poisoned.problem.a.memory->bytes());
    Rig rig;
    EXPECT_TRUE(rig.run(poisoned));
    EXPECT_EQ(rig.vendor->made(Step::kProduct), 0);
  }
}

TEST(VendorBridge, B5_EmptyProductsEncodeNothing) {
  for (const GemmCase& c : {GemmCase{.m = 0}, GemmCase{.n = 0}, GemmCase{.batch = 0}}) {
    Rig rig;
    TestProblem problem(c);
    const GemmPlan plan = rig.bridge->plan(problem.problem).value();
    EXPECT_EQ(plan.launches(), 0u);
    FakeContext context(1, 0);
    rig.bridge->encode(plan, context).value();
    EXPECT_EQ(context.commands() + context.retained(), 0u);
    EXPECT_EQ(rig.vendor->live(), 0);
  }
}

TEST(VendorBridge, Br18_GuardsHoldOnRaggedShapes) {
  const std::array<std::array<std::uint64_t, 3>, 4> shapes = {
      {{16, 768, 230}, {16, 760, 230}, {40, 768, 228}, {8, 72, 40}}};
  for (const auto& [m, k, n] : shapes) {
    EXPECT_TRUE(runs({.m = m, .n = n, .k = k}));
    EXPECT_TRUE(runs({.m = m,
                      .n = n,
                      .k = k,
                      .a = Dtype::kF16,
                      .b = Dtype::kF16,
                      .d = Dtype::kF16,
                      .has_bias = true}));
  }
}

TEST(VendorBridge, Br19_W21_SumsAreNeverHalf) {
  // 16,384 ones: a half accumulator stops at 2,048.
  Rig rig;
  TestProblem p({.m = 3, .n = 2, .k = 16384, .a = Dtype::kF16, .b = Dtype::kF16});
  for (const backend::Operand* o : {&p.problem.a, &p.problem.b}) {
    for (std::uint64_t i = 0; i < o->rows * o->cols; ++i)
      backend::test::store(o->dtype, backend::test::data_of(*o) + i * 2, 1.0);
  }
  (void)rig.run(p);  // the fixture's own expectation is that of the random values
  for (const double value : p.result()) EXPECT_EQ(value, 16384.0);
}

TEST(VendorBridge, Br20_BatchesOnBothSidesAndBroadcasts) {
  for (const bool repeats_a : {false, true}) {
    for (const bool repeats_b : {false, true}) {
      for (const bool is_interleaved : {false, true}) {
        for (const bool has_batches : {false, true}) {
          Rig rig;
          rig.vendor->row.has_batches = has_batches;
          TestProblem problem({.m = 4,
                               .n = 3,
                               .k = 5,
                               .b = Dtype::kF16,
                               .batch = 3,
                               .repeats_a = repeats_a,
                               .repeats_b = repeats_b,
                               .is_interleaved = is_interleaved,
                               .padding = 1,
                               .beta = 1});
          EXPECT_TRUE(rig.run(problem));
          EXPECT_EQ(rig.vendor->made(Step::kProduct), has_batches ? 1 : 3);
          EXPECT_EQ(rig.bridge->plan(problem.problem)->vendor_calls, has_batches ? 1u : 3u);
        }
      }
    }
  }
}

TEST(VendorBridge, B6_W28_EpiloguesByTheVendorOrByOneKernelOfOurs) {
  for (int i = 0; i < backend::kActivations; ++i) {
    for (const Dtype d : {Dtype::kF32, Dtype::kF16, Dtype::kBf16}) {
      for (const bool is_vendors : {false, true}) {
        for (const bool is_c_apart : {false, true}) {
          Rig rig;
          rig.vendor->row.has_separate_c = is_vendors;
          rig.vendor->row.has_bias_f32 = rig.vendor->row.has_bias_result = is_vendors;
          if (is_vendors) rig.vendor->row.activations = 31;
          TestProblem problem({.m = 5,
                               .n = 6,
                               .k = 7,
                               .a = Dtype::kBf16,
                               .b = Dtype::kBf16,
                               .d = d,
                               .batch = 2,
                               .beta = 0.5f,
                               .is_c_apart = is_c_apart,
                               .has_bias = true,
                               .bias = i % 2 == 0 ? d : Dtype::kF32,
                               .activation = static_cast<Activation>(i)});
          EXPECT_TRUE(rig.run(problem));
          EXPECT_LE(rig.vendor->made(Step::kEpilogue), 1);
          const GemmPlan plan = rig.bridge->plan(problem.problem).value();
          EXPECT_EQ(plan.call.has_own_epilogue, rig.vendor->made(Step::kEpilogue) == 1);
          EXPECT_EQ(plan.launches(),
                    1u + (plan.call.has_own_epilogue ? 1 : 0) + plan.conversions.size());
        }
      }
    }
  }
}

TEST(VendorBridge, Br57_OneArenaForAllOperandsGivesTheSameBytes) {
  for (const float beta : {0.0f, 1.0f}) {
    const GemmCase apart{.m = 9,
                         .n = 10,
                         .k = 11,
                         .b = Dtype::kF16,
                         .is_b_transposed = true,
                         .batch = 2,
                         .padding = 2,
                         .beta = beta,
                         .is_c_apart = true,
                         .has_bias = true,
                         .activation = Activation::kGeluErf};
    GemmCase arena = apart;
    arena.is_one_arena = true;
    TestProblem first(apart);
    TestProblem second(arena);
    Rig rig;
    EXPECT_TRUE(rig.run(first));
    EXPECT_TRUE(rig.run(second));
    EXPECT_EQ(first.result(), second.result());
  }
}

// 6 GiB of address space of which only the touched pages exist.
backend::AllocationRef sparse(std::uint64_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  const std::shared_ptr<const void> owner(data, [bytes](void* at) { ::munmap(at, bytes); });
  return std::make_shared<backend::HostAllocation>(1, static_cast<std::byte*>(data), bytes, owner);
}

TEST(VendorBridge, Br14_OffsetsBeyond4GibAreRightOrRefusedByName) {
  const GemmCase shape{.m = 4, .n = 4, .k = 4};
  TestProblem near(shape);
  Rig reference;
  ASSERT_TRUE(reference.run(near));
  const backend::AllocationRef large = sparse(6 * kGib);
  ASSERT_NE(large, nullptr);
  constexpr std::uint64_t kTile = 64;
  for (const bool is_proven : {true, false}) {
    Rig rig;
    rig.vendor->row.unproven_bytes = 4 * kGib;
    rig.vendor->probe_answer = is_proven;
    for (const std::uint64_t offset :
         {4 * kGib - kTile, 4 * kGib - kTile / 2, 4 * kGib, 4 * kGib + kTile, 6 * kGib - kTile}) {
      for (auto member :
           {&backend::GemmProblem::a, &backend::GemmProblem::b, &backend::GemmProblem::d}) {
        TestProblem far(shape);
        backend::Operand& operand = far.problem.*member;
        const std::byte* from = backend::test::data_of(operand);
        const backend::AllocationRef keep = operand.memory;
        operand.memory = large;
        operand.offset = offset;
        std::memcpy(backend::test::data_of(operand), from, kTile);
        const Result<GemmPlan> plan = rig.bridge->plan(far.problem);
        if (!is_proven && offset + kTile > 4 * kGib) {
          ASSERT_FALSE(plan.ok());
          EXPECT_EQ(plan.error().code(), ErrorCode::kUnsupported);
          EXPECT_THAT(plan.error().message(), HasSubstr("byte offset " + std::to_string(offset)));
          continue;
        }
        ASSERT_TRUE(plan.ok()) << plan.error().message();
        FakeContext context(1, 0);
        rig.bridge->encode(*plan, context).value();
        context.complete().value();
        EXPECT_EQ(far.result(), near.result()) << offset;
      }
    }
    // Once per offset beyond, whatever the operand.
    EXPECT_EQ(rig.vendor->made(Step::kProbe), 4);
  }
}

TEST(VendorBridge, Br14_AProbeThatCannotRunIsTriedAgain) {
  Rig rig;
  rig.vendor->row.unproven_bytes = 600;  // the operands start at byte 512
  TestProblem problem({.m = 8, .n = 8, .k = 8});
  rig.vendor->fail_nth(Step::kProbe, 1, test::Failure::kThrow);
  EXPECT_THAT(rig.bridge->plan(problem.problem).error().message(), HasSubstr("injected exception"));
  EXPECT_TRUE(rig.run(problem));
}

TEST(VendorBridge, W11_MemoryOfAnotherDeviceIsRefused) {
  Rig rig;
  const TestProblem other({.device = 2});
  EXPECT_THAT(rig.bridge->plan(other.problem).error().message(),
              HasSubstr("A lies on device 2, this executable runs on device 1"));
}

TEST(VendorBridge, Br06_AVendorCallNeverMeetsAnOpenEncoderOfOurs) {
  Rig rig;
  TestProblem first({.n = 5});
  TestProblem second({.n = 6, .b = Dtype::kF16, .has_bias = true});  // own, vendor, own
  const GemmPlan one = rig.bridge->plan(first.problem).value();
  const GemmPlan two = rig.bridge->plan(second.problem).value();
  FakeContext context(1, two.workspace_bytes);
  context.own_command([] {});
  rig.bridge->encode(one, context).value();
  context.own_command([] {});
  rig.bridge->encode(two, context).value();
  rig.bridge->encode(one, context).value();
  EXPECT_EQ(context.order(), "ovoovov");
  EXPECT_EQ(context.overlaps(), 0);
  context.complete().value();
  EXPECT_TRUE(second.is_right());
}

TEST(VendorBridge, Br08_AFailedSubmissionReturnsItsReasonAndTouchesNoData) {
  Rig rig;
  TestProblem problem({});
  const GemmPlan plan = rig.bridge->plan(problem.problem).value();
  FakeContext context(1, 0);
  rig.bridge->encode(plan, context).value();
  const auto before = problem.bytes_of_d();
  EXPECT_FALSE(context.complete(Error(ErrorCode::kDevice, "command buffer: time-out")).ok());
  EXPECT_EQ(problem.bytes_of_d(), before);
  EXPECT_EQ(context.retained(), 0u);
  EXPECT_TRUE(rig.run(problem));  // and the cached objects are good
}

TEST(VendorBridge, Br51_TheFixtureSeesAProductThatDidNotRun) {
  // The test of the tests: without a product, with the product of other values, and with one byte
  // beyond D, is_right says no.
  TestProblem problem({.padding = 1});
  EXPECT_FALSE(problem.is_right());
  Rig rig;
  EXPECT_TRUE(rig.run(problem));
  std::byte* d = backend::test::data_of(problem.problem.d);
  d[4 * sizeof(float)] = std::byte{1};  // the gap behind the first row
  EXPECT_FALSE(problem.is_right());
  problem.restore();
  backend::test::store(Dtype::kF32, backend::test::data_of(problem.problem.b), 3.0);
  EXPECT_FALSE(rig.run(problem));
}

// The gate of all the above: shapes, layouts and dtypes that nobody thought of.
TEST(VendorBridge, RandomProblems) {
  std::mt19937_64 random(7);
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  const std::array dtypes = {Dtype::kF32, Dtype::kF16, Dtype::kBf16};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    GemmCase c{.m = 1 + pick(9), .n = 1 + pick(9), .k = pick(12)};
    c.a = dtypes[pick(3)];
    c.b = dtypes[pick(3)];
    c.d = dtypes[pick(3)];
    c.is_a_transposed = pick(2) == 0;
    c.is_b_transposed = pick(2) == 0;
    c.batch = static_cast<std::uint32_t>(1 + pick(3));
    c.repeats_a = pick(4) == 0;
    c.repeats_b = pick(4) == 0;
    c.is_interleaved = pick(2) == 0;
    c.padding = pick(4);
    c.alpha = pick(3) == 0 ? 1.0f : -0.7f;
    c.beta = pick(2) == 0 ? 0.0f : 1.5f;
    c.is_c_apart = pick(2) == 0;
    c.has_bias = pick(2) == 0;
    c.bias = pick(2) == 0 ? c.d : Dtype::kF32;
    c.activation = static_cast<Activation>(pick(backend::kActivations));
    c.is_one_arena = pick(2) == 0;
    c.seed = seed + 1;
    Rig rig;
    rig.vendor->row.has_batches = pick(2) == 0;
    rig.vendor->row.has_separate_c = pick(2) == 0;
    rig.vendor->row.has_bias_f32 = pick(2) == 0;
    rig.vendor->row.activations = static_cast<std::uint32_t>(1 + 2 * pick(16));
    rig.vendor->plan_workspace = 256 * pick(2);
    TestProblem problem(c);
    ASSERT_TRUE(rig.run(problem)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tern::gpu
