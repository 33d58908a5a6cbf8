// Checks and eligibility of vendor products: what is refused, by which name and with which numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "backend/vendor_gemm_limits.h"
#include "backend/vendor_gemm_test_problem.h"

namespace tern::backend {
namespace {

using test::GemmCase;
using test::TestProblem;
using testing::HasSubstr;

constexpr std::uint64_t kGib = std::uint64_t{1} << 30;
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

// Memory that nobody touches: a size is all that the checks look at.
AllocationRef memory_of(std::uint64_t bytes) {
  return std::make_shared<HostAllocation>(1, nullptr, bytes);
}

std::string message(const GemmProblem& problem) {
  const Result<void> result = check_problem(problem);
  return result.ok() ? "" : result.error().message();
}

constexpr std::array kTriples = {
    DtypeTriple{Dtype::kF32, Dtype::kF32, Dtype::kF32},
    DtypeTriple{Dtype::kF16, Dtype::kF16, Dtype::kF16},
    DtypeTriple{Dtype::kF16, Dtype::kF16, Dtype::kF32},
};
// Alike MPS: own command per product, no epilogue, C only in place, 4 GiB unless proven.
constexpr VendorLimits kStrict{.name = "strict",
                               .triples = kTriples,
                               .max_dimension = 65536,
                               .offset_alignment = 16,
                               .row_alignment = 16,
                               .batch_alignment = 16,
                               .unproven_bytes = 4 * kGib,
                               .has_separate_c = false};

TEST(VendorCheck, AcceptsWhatTheFixturesMake) {
  for (const bool is_interleaved : {false, true}) {
    const TestProblem p({.m = 3,
                         .n = 5,
                         .k = 7,
                         .batch = 3,
                         .is_interleaved = is_interleaved,
                         .padding = 2,
                         .beta = 1,
                         .is_c_apart = true,
                         .has_bias = true});
    EXPECT_EQ(message(p.problem), "");
  }
}

TEST(VendorCheck, W27_RangesAreCheckedAgainstEachOperandsOwnAllocation) {
  const TestProblem good({.m = 4, .n = 6, .k = 8, .beta = 1, .is_c_apart = true, .has_bias = true});
  const std::array<Operand GemmProblem::*, 4> members = {&GemmProblem::a, &GemmProblem::b,
                                                         &GemmProblem::c, &GemmProblem::d};
  for (std::size_t i = 0; i < members.size(); ++i) {
    GemmProblem p = good.problem;
    Operand& operand = p.*members[i];
    const std::uint64_t span = span_bytes(p, operand, static_cast<OperandName>(i)).value();
    operand.memory = memory_of(operand.offset + span);
    EXPECT_EQ(message(p), "") << i;
    operand.memory = memory_of(operand.offset + span - 1);
    const std::string text = message(p);
    EXPECT_THAT(text, HasSubstr(std::string("test product: ") + "ABCD"[i] + ": "));
    EXPECT_THAT(text, HasSubstr("at byte 512 needs " + std::to_string(span) + " bytes"));
    EXPECT_THAT(text, HasSubstr("has " + std::to_string(operand.offset + span - 1)));
  }
  GemmProblem p = good.problem;
  p.epilogue.bias->memory = memory_of(p.epilogue.bias->offset + 23);
  EXPECT_THAT(message(p), HasSubstr("bias: 6 elements of f32 at byte 512 needs 24 bytes"));
  p = good.problem;
  p.b.memory = nullptr;
  EXPECT_THAT(message(p), HasSubstr("B: [8, 6] of f32 with row stride 6 has no memory"));
}

TEST(VendorCheck, W27_SumsAndProductsThatOverflowAreErrorsAndNotSmallNumbers) {
  const TestProblem good({.m = 4, .n = 4, .k = 4, .batch = 2});
  GemmProblem p = good.problem;
  p.a.row_stride = kMax / 3 + 1;  // * 3 rows wraps to 2
  EXPECT_THAT(message(p), HasSubstr("A: [4, 4] of f32 with row stride 6148914691236517206"));
  EXPECT_THAT(message(p), HasSubstr("does not fit 64 bits"));
  p = good.problem;
  p.b.batch_stride = kMax - 4;
  EXPECT_THAT(message(p), HasSubstr("does not fit 64 bits"));
  p = good.problem;
  p.d.row_stride = kMax / 12;  // elements fit, bytes do not
  EXPECT_THAT(message(p), HasSubstr("D: "));
  p = good.problem;
  p.a.offset = kMax - 7;
  EXPECT_THAT(message(p), HasSubstr("does not fit 64 bits"));
  p = good.problem;
  p.a.rows = p.d.rows = std::uint64_t{1} << 62;
  EXPECT_THAT(message(p), HasSubstr("does not fit 64 bits"));
}

TEST(VendorCheck, ShapesStridesAndAlignmentOfElements) {
  const TestProblem good({.m = 2, .n = 3, .k = 4, .beta = 1, .is_c_apart = true});
  GemmProblem p = good.problem;
  p.b.rows = 5;
  EXPECT_THAT(message(p), HasSubstr("op(A) is [2, 4] and op(B) is [5, 3]"));
  p = good.problem;
  p.d.cols = 2;
  EXPECT_THAT(message(p), HasSubstr("D is [2, 2], the product is [2, 3]"));
  p = good.problem;
  p.c.rows = 1;
  EXPECT_THAT(message(p), HasSubstr("C is [1, 3]"));
  p.beta = 0;  // C is not looked at
  EXPECT_EQ(message(p), "");
  p = good.problem;
  p.c.dtype = Dtype::kF16;
  EXPECT_THAT(message(p), HasSubstr("C is f16 and D is f32"));
  p = good.problem;
  p.d.transposed = true;
  EXPECT_THAT(message(p), HasSubstr("D is marked transposed"));
  p = good.problem;
  p.a.row_stride = 3;
  EXPECT_THAT(message(p), HasSubstr("A: the row stride 3 is below the width 4"));
  p = good.problem;
  p.a.offset = 514;
  EXPECT_THAT(message(p), HasSubstr("A: byte offset 514 is no multiple"));
}

TEST(VendorCheck, AResultNeverOverlapsItself) {
  const TestProblem good({.m = 4, .n = 4, .k = 4, .batch = 3});
  GemmProblem p = good.problem;
  p.d.batch_stride = 15;
  EXPECT_THAT(message(p), HasSubstr("D: [4, 4] of f32 with row stride 4, 3 times with batch stride "
                                    "15: its matrices overlap"));
  p.d.batch_stride = 0;
  EXPECT_THAT(message(p), HasSubstr("overlap"));
  p.d.batch_stride = 16;
  EXPECT_EQ(message(p), "");
}

TEST(VendorCheck, OnlyCMayBeD) {
  const AllocationRef arena = memory_of(1 << 20);
  const auto at = [&](std::uint64_t offset, std::uint64_t stride) {
    return Operand{.memory = arena, .offset = offset, .rows = 8, .cols = 8, .row_stride = stride};
  };
  GemmProblem p{
      .op = "x", .a = at(0, 8), .b = at(256, 8), .c = at(512, 8), .d = at(512, 8), .beta = 1};
  EXPECT_EQ(message(p), "");
  p.c.offset = 544;  // D one row further
  EXPECT_THAT(message(p), HasSubstr("D (bytes 512 to 768) lies over C (bytes 544 to 800)"));
  p.beta = 0;
  EXPECT_EQ(message(p), "");
  p.b.offset = 508;
  EXPECT_THAT(message(p), HasSubstr("lies over B"));
  // Slices of one fused row: q, k and the result side by side.
  p.a = at(0, 24);
  p.b = at(32, 24);
  p.d = at(64, 24);
  EXPECT_EQ(message(p), "");
  p.d = at(60, 24);
  EXPECT_THAT(message(p), HasSubstr("lies over B"));
  // The same with one row and heads as the batch.
  p.batch = 4;
  for (Operand* o : {&p.a, &p.b, &p.d}) o->batch_stride = 1024;
  p.d = at(64, 24);
  p.d.batch_stride = 1024;
  EXPECT_NE(message(p), "");  // 1,024 is no multiple of 24: columns do meet
  for (Operand* o : {&p.a, &p.b, &p.d}) o->batch_stride = 240;
  EXPECT_EQ(message(p), "");
}

TEST(VendorCheck, Br22_IntegersAreRefusedByNameAndNeverReadAsFloats) {
  for (const Dtype dtype : {Dtype::kI32, Dtype::kU32, Dtype::kI16, Dtype::kI8, Dtype::kF64}) {
    GemmProblem p = TestProblem({}).problem;
    p.a.dtype = dtype;
    p.a.memory = memory_of(1 << 20);
    const Result<void> result = check_problem(p);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), ErrorCode::kUnsupported);
    EXPECT_THAT(result.error().message(),
                HasSubstr("A is " + std::string(to_string(dtype)) + "; the vendor bridge"));
  }
}

TEST(VendorCheck, EmptyProductsNeedNoMemory) {
  for (const GemmCase& c : {GemmCase{.m = 0}, GemmCase{.n = 0}, GemmCase{.batch = 0}}) {
    GemmProblem p = TestProblem(c).problem;
    p.a.memory = p.b.memory = p.d.memory = nullptr;
    if (c.m == 0) p.b.memory = memory_of(1 << 20);
    if (c.n == 0) p.a.memory = memory_of(1 << 20);
    EXPECT_EQ(message(p), "") << c.text();
    EXPECT_TRUE(can_run(p, kStrict));
  }
}

TEST(VendorEligible, Br23_TheReasonNamesOperandNumbersAndVendor) {
  const TestProblem good({.m = 4, .n = 8, .k = 8});
  const auto reason = [](const GemmProblem& p) { return can_run(p, kStrict).reason; };
  EXPECT_EQ(reason(good.problem), "");
  GemmProblem p = good.problem;
  p.a.offset += 4;
  EXPECT_EQ(reason(p), "A: byte offset 516 is no multiple of strict's 16");
  p = good.problem;
  p.b.row_stride = 9;
  EXPECT_EQ(reason(p), "B: row stride 9 of f32 is 36 bytes, no multiple of strict's 16");
  p = good.problem;
  p.a.row_stride = 65540;
  EXPECT_EQ(reason(p), "A: row stride 65540 is above strict's 65536 elements");
  p = good.problem;
  p.a.rows = p.d.rows = 65537;
  EXPECT_EQ(reason(p), "m = 65537 is above strict's 65536");
  p = good.problem;
  p.contract = Contract::kExact;
  EXPECT_EQ(reason(p), "the program is exact and strict promises no order of sums");
  p = good.problem;
  p.batch = 2;
  p.a.batch_stride = 33;
  EXPECT_EQ(reason(p), "A: batch stride 33 of f32 is no multiple of strict's 16 bytes");
}

TEST(VendorEligible, Br21_AnUnsupportedDtypeIsRefusedByName) {
  VendorLimits limits = kStrict;
  limits.conversion = ConversionRule::kNone;
  const TestProblem bf16({.n = 8, .k = 8, .a = Dtype::kBf16, .b = Dtype::kBf16});
  EXPECT_EQ(can_run(bf16.problem, limits).reason,
            "bf16 x bf16 -> f32 is none of strict's: f32 x f32 -> f32, f16 x f16 -> f16, f16 x f16 "
            "-> f32");
  // With conversions it runs, and says what it converts.
  const Eligibility widened = eligibility(bf16.problem, kStrict);
  EXPECT_TRUE(widened.verdict);
  EXPECT_TRUE(widened.call.converts_a && widened.call.converts_b);
  EXPECT_EQ(widened.call.dtypes.a, Dtype::kF32);
}

TEST(VendorEligible, W15_MixedPairsAreConversionsAndNoReasonToRefuse) {
  const TestProblem mixed({.n = 8, .k = 8, .b = Dtype::kF16, .is_b_transposed = true});
  const Eligibility widened = eligibility(mixed.problem, kStrict);
  ASSERT_TRUE(widened.verdict) << widened.verdict.reason;
  EXPECT_FALSE(widened.call.converts_a);
  EXPECT_TRUE(widened.call.converts_b);
  VendorLimits limits = kStrict;
  limits.conversion = ConversionRule::kNarrow;
  const Eligibility narrowed = eligibility(mixed.problem, limits);
  ASSERT_TRUE(narrowed.verdict);
  EXPECT_TRUE(narrowed.call.converts_a);
  EXPECT_FALSE(narrowed.call.converts_b);
  EXPECT_EQ(narrowed.call.dtypes.a, Dtype::kF16);
  EXPECT_EQ(narrowed.call.dtypes.d, Dtype::kF32);
}

TEST(VendorEligible, W15_AConvertedOperandNeedsNoAlignmentOfItsOwn) {
  TestProblem mixed({.n = 8, .k = 7, .b = Dtype::kF16, .is_b_transposed = true});
  mixed.problem.a.row_stride = 8;
  mixed.problem.a.memory = memory_of(1 << 20);
  EXPECT_TRUE(can_run(mixed.problem, kStrict));  // rows of 14 bytes, read by our own conversion
}

TEST(VendorEligible, W12_WeightsInAnAllocationOfTheirOwnAreEligible) {
  const TestProblem apart({.m = 512, .n = 16, .k = 16, .is_b_transposed = true});
  EXPECT_NE(apart.problem.a.memory->id(), apart.problem.b.memory->id());
  EXPECT_TRUE(can_run(apart.problem, kStrict));
}

TEST(VendorEligible, W14_ABatchIsOneCallWhereTheVendorCan) {
  const TestProblem batch({.n = 8, .k = 8, .batch = 4});
  EXPECT_FALSE(eligibility(batch.problem, kStrict).call.is_loop);
  VendorLimits limits = kStrict;
  limits.has_batches = false;
  EXPECT_TRUE(eligibility(batch.problem, limits).call.is_loop);
  limits = kStrict;
  limits.has_broadcast_batches = false;
  EXPECT_FALSE(eligibility(batch.problem, limits).call.is_loop);
  const TestProblem repeated({.n = 8, .k = 8, .batch = 4, .repeats_b = true});
  EXPECT_TRUE(eligibility(repeated.problem, limits).call.is_loop);
  limits = kStrict;
  limits.has_interleaved_batches = false;
  const TestProblem heads({.n = 8, .k = 8, .batch = 4, .is_interleaved = true});
  EXPECT_TRUE(eligibility(heads.problem, limits).call.is_loop);
}

TEST(VendorEligible, W28_BiasAndActivationAreTheVendorsOrOneKernel) {
  VendorLimits limits = kStrict;
  limits.has_bias_f32 = true;
  limits.activations |= 1u << static_cast<unsigned>(Activation::kGeluTanh);
  const TestProblem tanh({.n = 8, .k = 8, .has_bias = true, .activation = Activation::kGeluTanh});
  EXPECT_FALSE(eligibility(tanh.problem, limits).call.has_own_epilogue);
  EXPECT_TRUE(eligibility(tanh.problem, limits).call.has_vendor_bias);
  // The other gelu is another function, never the vendor's by another name.
  const TestProblem erf({.n = 8, .k = 8, .has_bias = true, .activation = Activation::kGeluErf});
  const VendorCall own = eligibility(erf.problem, limits).call;
  EXPECT_TRUE(own.has_own_epilogue);
  EXPECT_FALSE(own.has_vendor_bias || own.has_vendor_activation);
  EXPECT_FALSE(own.has_staged_result);  // f32 in place
  const TestProblem half({.n = 8,
                          .k = 8,
                          .a = Dtype::kF16,
                          .b = Dtype::kF16,
                          .d = Dtype::kF16,
                          .activation = Activation::kSilu});
  EXPECT_TRUE(eligibility(half.problem, limits).call.has_staged_result);  // one rounding
}

TEST(VendorEligible, Br14_BeyondTheTrustedBytesOnlyWithAProbeAtThatOffset) {
  GemmProblem p = TestProblem({.m = 8, .n = 8, .k = 8}).problem;
  const std::uint64_t bytes = span_bytes(p, p.b, OperandName::kB).value();
  p.b.memory = memory_of(16 * kGib);
  p.b.offset = 4 * kGib - bytes;
  EXPECT_TRUE(can_run(p, kStrict));
  p.b.offset += 16;
  EXPECT_THAT(can_run(p, kStrict).reason,
              HasSubstr("B: byte offset 4294967056 reaches beyond byte 4294967296"));
  EXPECT_EQ(unproven_operands(p, kStrict), std::vector{OperandName::kB});
  const OffsetProven proven = [](const Operand& o, OperandName name) {
    return name == OperandName::kB && o.offset == 4 * kGib - 256 + 16;
  };
  EXPECT_TRUE(can_run(p, kStrict, proven));
  p.b.offset += 16;  // proven at that very offset, nowhere else
  EXPECT_FALSE(can_run(p, kStrict, proven));
}

TEST(VendorMemory, W2_AllocationIdsAreNeverGivenOutTwice) {
  std::vector<std::vector<AllocationId>> taken(4);
  std::vector<std::jthread> threads;
  for (auto& ids : taken) {
    threads.emplace_back([&ids] {
      for (int i = 0; i < 1000; ++i) ids.push_back(HostAllocation(1, nullptr, 0).id());
    });
  }
  threads.clear();
  std::set<AllocationId> all;
  for (const auto& ids : taken) all.insert(ids.begin(), ids.end());
  EXPECT_EQ(all.size(), 4000u);
  EXPECT_FALSE(all.contains(0));
}

}  // namespace
}  // namespace tern::backend
