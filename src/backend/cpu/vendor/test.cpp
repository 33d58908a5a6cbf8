// The CPU's vendor products on OpenBLAS and on plain code: values, guards, threads, loading.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "backend/cpu/vendor/cpu_vendor_gemm.h"
#include "backend/cpu/vendor/finish.h"
#include "backend/cpu/vendor/plain_sgemm.h"
#include "backend/cpu/vendor/widen.h"
#include "backend/vendor_gemm_test_problem.h"
#include "base/env.h"
#include "base/half.h"

namespace tern::cpu {
namespace {

using backend::Activation;
using backend::GemmPlan;
using backend::VendorGemm;
using backend::test::GemmCase;
using backend::test::TestProblem;
using testing::HasSubstr;

constexpr std::uint64_t kGib = std::uint64_t{1} << 30;

Result<void> run(VendorGemm& vendor, const backend::GemmProblem& problem) {
  const Result<GemmPlan> plan = vendor.plan(problem);
  if (!plan.ok()) return plan.error();
  const auto context = CpuEncodeContext::make(1, plan->workspace_bytes);
  if (!context.ok()) return context.error();
  return vendor.encode(*plan, **context);
}

testing::AssertionResult is_right(VendorGemm& vendor, TestProblem& problem) {
  problem.restore();
  const Result<void> result = run(vendor, problem.problem);
  if (!result.ok()) return testing::AssertionFailure() << result.error().message();
  return problem.is_right();
}

// Every test runs on both; without OpenBLAS its half is skipped, loudly.
class CpuVendor : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { loaded_.emplace(OpenblasLibrary::load()); }
  static void TearDownTestSuite() { loaded_.reset(); }
  void SetUp() override {
    if (GetParam() != std::string("openblas")) return;
    if (!loaded_->ok()) GTEST_SKIP() << loaded_->error().message();
    library_ = loaded_->value();
  }
  std::unique_ptr<VendorGemm> make(ThreadPool& pool, CpuFeatures features = cpu_features()) {
    return make_cpu_vendor_gemm(library_, pool, 1, features);
  }
  testing::AssertionResult runs(const GemmCase& c) {
    TestProblem problem(c);
    return is_right(*make(pool_), problem);
  }

  // One copy for all of them, as an engine's owner would have it.
  static inline std::optional<Result<std::shared_ptr<const OpenblasLibrary>>> loaded_;
  std::shared_ptr<const OpenblasLibrary> library_;
  ThreadPool pool_{3};
};
INSTANTIATE_TEST_SUITE_P(Engines, CpuVendor, testing::Values("openblas", "plain"),
                         [](const auto& row) { return std::string(row.param); });

TEST_P(CpuVendor, W13_W16_FormsStridesAndScalars) {
  for (const bool at : {false, true}) {
    for (const bool bt : {false, true}) {
      for (const float beta : {0.0f, 1.0f, -0.5f}) {
        for (const bool is_c_apart : {false, true}) {
          EXPECT_TRUE(runs({.m = 37,
                            .n = 71,
                            .k = 45,
                            .is_a_transposed = at,
                            .is_b_transposed = bt,
                            .padding = 3,
                            .alpha = 0.75f,
                            .beta = beta,
                            .is_c_apart = is_c_apart}));
        }
      }
    }
  }
}

TEST_P(CpuVendor, B1_AllDtypesByWideningThatThePlanReports) {
  const std::array dtypes = {Dtype::kF32, Dtype::kF16, Dtype::kBf16};
  for (const Dtype a : dtypes) {
    for (const Dtype b : dtypes) {
      for (const Dtype d : dtypes) {
        // More of k than is widened at a time.
        TestProblem problem({.m = 5,
                             .n = 19,
                             .k = 2100,
                             .a = a,
                             .b = b,
                             .d = d,
                             .is_b_transposed = true,
                             .padding = 1,
                             .beta = 0.5f});
        const auto vendor = make(pool_);
        EXPECT_TRUE(is_right(*vendor, problem));
        const GemmPlan plan = vendor->plan(problem.problem).value();
        EXPECT_EQ(plan.conversions.size(),
                  (a != Dtype::kF32 ? 1u : 0u) + (b != Dtype::kF32 ? 1 : 0));
        EXPECT_EQ(plan.workspace_bytes != 0,
                  a != Dtype::kF32 || b != Dtype::kF32 || d != Dtype::kF32);
      }
    }
  }
}

TEST_P(CpuVendor, B6_EpiloguesInOnePass) {
  for (int i = 0; i < backend::kActivations; ++i) {
    for (const Dtype d : {Dtype::kF32, Dtype::kF16, Dtype::kBf16}) {
      for (const bool is_c_apart : {false, true}) {
        EXPECT_TRUE(runs({.m = 9,
                          .n = 300,
                          .k = 33,
                          .d = d,
                          .batch = 2,
                          .padding = 1,
                          .beta = 0.5f,
                          .is_c_apart = is_c_apart,
                          .has_bias = true,
                          .bias = i % 2 == 0 ? d : Dtype::kF32,
                          .activation = static_cast<Activation>(i)}));
      }
    }
  }
}

TEST_P(CpuVendor, Br17_B5_NothingOldIsRead) {
  for (const Dtype d : {Dtype::kF32, Dtype::kBf16}) {
    EXPECT_TRUE(runs({.m = 65, .n = 129, .k = 31, .d = d, .padding = 7}));
    for (const float beta : {0.0f, 2.0f}) {
      EXPECT_TRUE(runs({.m = 3,
                        .n = 4,
                        .k = 0,
                        .d = d,
                        .beta = beta,
                        .has_bias = true,
                        .activation = Activation::kRelu}));
      TestProblem nan({.m = 3, .n = 4, .k = 5, .d = d, .alpha = 0, .beta = beta, .has_bias = true});
      nan.problem.a.memory = backend::test::poisoned(1, nan.problem.a.memory->bytes());
      EXPECT_TRUE(is_right(*make(pool_), nan));
    }
  }
  for (const GemmCase& c : {GemmCase{.m = 0}, GemmCase{.n = 0}, GemmCase{.batch = 0}})
    EXPECT_TRUE(runs(c));
}

TEST_P(CpuVendor, Br18_Br24_GuardsHoldOnRaggedAndStarvedShapes) {
  const std::array<std::array<std::uint64_t, 3>, 9> shapes = {{{16, 1536, 700},
                                                               {16, 768, 2304},
                                                               {16, 760, 2304},
                                                               {40, 768, 2280},
                                                               {8, 72, 40},
                                                               {1, 300, 63},
                                                               {17, 512, 512},
                                                               {513, 40, 515},
                                                               {2, 9000, 3}}};
  for (const auto& [m, k, n] : shapes) {
    EXPECT_TRUE(runs({.m = m, .n = n, .k = k, .b = Dtype::kF16, .is_b_transposed = true}));
  }
}

TEST_P(CpuVendor, Br19_W21_SumsAreNeverHalf) {
  TestProblem p({.m = 3, .n = 2, .k = 16384, .a = Dtype::kF16, .b = Dtype::kF16, .d = Dtype::kF16});
  for (const backend::Operand* o : {&p.problem.a, &p.problem.b}) {
    for (std::uint64_t i = 0; i < o->rows * o->cols; ++i)
      backend::test::store(o->dtype, backend::test::data_of(*o) + i * 2, 1.0);
  }
  run(*make(pool_), p.problem).value();
  for (const double value : p.result()) EXPECT_EQ(value, 16384.0);
}

TEST_P(CpuVendor, Br20_BatchesAndBroadcasts) {
  for (const bool repeats_a : {false, true}) {
    for (const bool repeats_b : {false, true}) {
      for (const bool is_interleaved : {false, true}) {
        EXPECT_TRUE(runs({.m = 14,
                          .n = 23,
                          .k = 35,
                          .a = Dtype::kBf16,
                          .batch = 5,
                          .repeats_a = repeats_a,
                          .repeats_b = repeats_b,
                          .is_interleaved = is_interleaved,
                          .padding = 1,
                          .beta = 1}));
      }
    }
  }
}

TEST_P(CpuVendor, Br57_OneArenaForAllOperandsGivesTheSameBytes) {
  const GemmCase apart{.m = 33,
                       .n = 65,
                       .k = 70,
                       .b = Dtype::kF16,
                       .is_b_transposed = true,
                       .batch = 2,
                       .beta = 1,
                       .is_c_apart = true,
                       .has_bias = true,
                       .activation = Activation::kSilu};
  GemmCase arena = apart;
  arena.is_one_arena = true;
  TestProblem first(apart);
  TestProblem second(arena);
  const auto vendor = make(pool_);
  EXPECT_TRUE(is_right(*vendor, first));
  EXPECT_TRUE(is_right(*vendor, second));
  EXPECT_EQ(first.result(), second.result());
}

TEST_P(CpuVendor, Br14_OffsetsBeyond4Gib) {
  constexpr std::uint64_t kBytes = 6 * kGib;
  void* data = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  const auto large = std::make_shared<backend::HostAllocation>(
      1, static_cast<std::byte*>(data), kBytes,
      std::shared_ptr<void>(data, [](void* at) { ::munmap(at, kBytes); }));
  const GemmCase shape{.m = 16, .n = 16, .k = 16};
  constexpr std::uint64_t kTile = 16 * 16 * sizeof(float);
  TestProblem near(shape);
  const auto vendor = make(pool_);
  ASSERT_TRUE(is_right(*vendor, near));
  for (const std::uint64_t offset :
       {4 * kGib - kTile, 4 * kGib - kTile / 2, 4 * kGib, 4 * kGib + kTile, kBytes - kTile}) {
    for (const auto member :
         {&backend::GemmProblem::a, &backend::GemmProblem::b, &backend::GemmProblem::d}) {
      TestProblem far(shape);
      backend::Operand& operand = far.problem.*member;
      const backend::AllocationRef keep = operand.memory;
      const std::byte* from = backend::test::data_of(operand);
      operand.memory = large;
      operand.offset = offset;
      std::memcpy(backend::test::data_of(operand), from, kTile);
      run(*vendor, far.problem).value();
      EXPECT_EQ(far.result(), near.result()) << offset;
    }
  }
  // A matrix whose rows lie 2 GiB apart: row offsets beyond 32 bits within one call.
  TestProblem wide(GemmCase{.m = 3, .n = 16, .k = 16});
  TestProblem narrow(GemmCase{.m = 3, .n = 16, .k = 16});
  ASSERT_TRUE(is_right(*vendor, narrow));
  backend::Operand& a = wide.problem.a;
  const backend::AllocationRef keep = a.memory;
  const std::byte* from = backend::test::data_of(a);
  a.memory = large;
  a.offset = 0;
  a.row_stride = 2 * kGib / sizeof(float);
  for (std::uint64_t r = 0; r < 3; ++r)
    std::memcpy(backend::test::data_of(a) + r * 2 * kGib, from + r * 64, 64);
  run(*vendor, wide.problem).value();
  EXPECT_EQ(wide.result(), narrow.result());
}

TEST_P(CpuVendor, Br01_AlternatingModelsAreBitEqual) {
  std::array<std::vector<double>, 2> first;
  for (std::size_t round = 0; round < 100; ++round) {
    const std::size_t model = round % 2;
    TestProblem problem({.m = 8, .n = 60 + model, .k = 64, .b = Dtype::kF16, .seed = model + 1});
    const auto vendor = make(pool_);
    ASSERT_TRUE(is_right(*vendor, problem));
    if (round < 2) first[model] = problem.result();
    EXPECT_EQ(problem.result(), first[model]);
  }
}

TEST_P(CpuVendor, Br03_ThreadsOnOneBridgeAndTheNumberOfThreadsDoNotChangeABit) {
  const GemmCase shape{.m = 70, .n = 300, .k = 200, .b = Dtype::kBf16, .is_b_transposed = true};
  TestProblem alone(shape);
  ThreadPool one(1);
  ASSERT_TRUE(is_right(*make(one), alone));
  ThreadPool pool(4);
  const auto vendor = make(pool);
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 16; ++t) {
      threads.emplace_back([&, t] {
        const bool is_same = t < 8;
        TestProblem problem(is_same ? shape : GemmCase{.m = t, .n = 40, .k = 50, .seed = t});
        for (int i = 0; i < 5; ++i) {
          wrong += is_right(*vendor, problem) ? 0 : 1;
          if (is_same && problem.result() != alone.result()) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  // Engines with pools of their own, side by side in the one copy of the library.
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        ThreadPool mine(2);
        const auto other = make(mine);
        TestProblem problem(shape);
        for (int i = 0; i < 5; ++i) {
          wrong += is_right(*other, problem) ? 0 : 1;
          if (problem.result() != alone.result()) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(CpuVendor, RandomProblems) {
  std::mt19937_64 random(11);
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  const std::array dtypes = {Dtype::kF32, Dtype::kF16, Dtype::kBf16};
  const auto vendor = make(pool_);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    GemmCase c{.m = 1 + pick(70), .n = 1 + pick(140), .k = pick(60)};
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
    TestProblem problem(c);
    ASSERT_TRUE(is_right(*vendor, problem)) << "seed " << seed;
  }
}

TEST_P(CpuVendor, Br21_B8_RefusalsComeByName) {
  const auto vendor = make(pool_);
  TestProblem exact({});
  exact.problem.contract = backend::Contract::kExact;
  EXPECT_THAT(vendor->plan(exact.problem).error().message(),
              HasSubstr(std::string(GetParam()) + " cannot run it: the program is exact"));
  const TestProblem other({.device = 2});
  EXPECT_THAT(vendor->plan(other.problem).error().message(), HasSubstr("A lies on device 2"));
  TestProblem small({.d = Dtype::kF16});
  const GemmPlan plan = vendor->plan(small.problem).value();
  const auto context = CpuEncodeContext::make(1, 16).value();
  const Result<void> encoded = vendor->encode(plan, *context);
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(encoded.error().code(), ErrorCode::kOutOfMemory);
}

TEST(CpuVendorWiden, EveryHalfAndEveryBf16IsExactInEveryVariant) {
  std::vector<std::uint16_t> bits(65536 + 3);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  for (const CpuFeatures features : {CpuFeatures(), cpu_features()}) {
    const Widen widen = widen_functions(features);
    std::vector<float> got(bits.size());
    widen.from_half(bits.data(), got.data(), bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]),
                std::bit_cast<std::uint32_t>(half_to_float(bits[i])))
          << i;
    widen.from_bf16(bits.data(), got.data(), bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]),
                std::bit_cast<std::uint32_t>(bf16_to_float(bits[i])))
          << i;
  }
}

TEST(CpuVendorFinish, NanAndInfinityPassThroughAndNothingElseBecomesOne) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (int i = 0; i < backend::kActivations; ++i) {
    std::array<float, 6> x = {
        std::numeric_limits<float>::quiet_NaN(), kInf, 1e30f, -1e30f, 0.0f, -3.0f};
    finish_tile({.rows = 1,
                 .columns = 6,
                 .sums = x.data(),
                 .sums_row_stride = 6,
                 .activation = static_cast<Activation>(i),
                 .d = reinterpret_cast<std::byte*>(x.data()),
                 .d_row_stride = 6});
    EXPECT_TRUE(std::isnan(x[0])) << i;
    EXPECT_EQ(x[1], kInf) << i;
    EXPECT_GT(x[2], 9e29f) << i;
    EXPECT_TRUE(std::isfinite(x[3])) << i;
    EXPECT_EQ(x[4], 0.0f) << i;
  }
}

TEST(CpuVendorLoading, AbsenceIsNormalAndSaysSo) {
  const auto missing = OpenblasLibrary::load({.name = "libno_such_blas.so.0"});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("OpenBLAS is not there (libno_such_blas.so.0"));
  EXPECT_THAT(missing.error().message(), HasSubstr("Install libopenblas0"));
  const auto foreign = OpenblasLibrary::load({.name = "libm.so.6"});
  ASSERT_FALSE(foreign.ok());
  EXPECT_THAT(foreign.error().message(), HasSubstr("libm.so.6 is no OpenBLAS"));
}

TEST(CpuVendorLoading, OurCopyRunsOneThreadAndChangesNothingForOthers) {
  // The copy that anybody else in this process would use.
  void* shared = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (shared == nullptr) GTEST_SKIP() << ::dlerror();
  const auto threads = reinterpret_cast<int (*)()>(::dlsym(shared, "openblas_get_num_threads"));
  const int before = threads();
  const std::size_t variables = environment_with_prefix("OPENBLAS_").size();
  const std::string core =
      reinterpret_cast<char* (*)()>(::dlsym(shared, "openblas_get_corename"))();
  const auto ours = OpenblasLibrary::load();
  ASSERT_TRUE(ours.ok()) << ours.error().message();
  EXPECT_EQ(threads(), before);
  EXPECT_EQ(environment_with_prefix("OPENBLAS_").size(), variables);
  // A processor that the library does not know is no reason for code of 2004.
  const bool is_modern = cpu_features().contains({CpuFeature::kAvx2, CpuFeature::kFma});
  EXPECT_TRUE((*ours)->core() != "Prescott" || !is_modern);
  EXPECT_TRUE(core == "Prescott" || (*ours)->core() == core);
  // Without a copy of our own: refused by name when it would run threads.
  const auto ordinary = OpenblasLibrary::load({.is_private = false});
  EXPECT_EQ(ordinary.ok(), before == 1);
  if (!ordinary.ok()) {
    EXPECT_THAT(ordinary.error().message(), HasSubstr("OPENBLAS_NUM_THREADS=1"));
  }
  ::dlclose(shared);
}

TEST(CpuVendorLoading, Br48_EnginesLoadAndDropTheirCopies) {
  std::string core;
  for (int i = 0; i < 15; ++i) {
    const auto library = OpenblasLibrary::load();
    if (!library.ok() && i == 0) GTEST_SKIP() << library.error().message();
    ASSERT_TRUE(library.ok()) << library.error().message();
    if (i == 0) core = (*library)->core();
    ASSERT_EQ((*library)->core(), core);
    ThreadPool pool(2);
    TestProblem problem({.m = 20, .n = 20, .k = 20});
    EXPECT_TRUE(is_right(*make_cpu_vendor_gemm(library.value(), pool, 1), problem));
  }
}

// More copies than the process has room for: the rest is refused with the reason, and goes on
// without. In a child, since the room does not come back.
TEST(CpuVendorLoading, Br48_WhoFindsNoRoomForACopyIsTold) {
  const auto exhaust = [] {
    std::vector<std::shared_ptr<const OpenblasLibrary>> all;
    for (int i = 0; i < 20; ++i) {
      auto library = OpenblasLibrary::load();
      if (!library.ok()) std::exit(library.error().message().empty() ? 1 : 0);
      all.push_back(library.value());
    }
    std::exit(0);
  };
  EXPECT_EXIT(exhaust(), testing::ExitedWithCode(0), "");
}

TEST(CpuVendorLoading, Br48_TwoThreadsLoadAndDropAtOnce) {
  const auto load = [] {
    std::atomic<int> wrong{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 5; ++i) {
          const auto library = OpenblasLibrary::load();
          if (!library.ok()) continue;  // no room: tested above
          ThreadPool pool(2);
          TestProblem problem({.m = 20, .n = 20, .k = 20});
          wrong += is_right(*make_cpu_vendor_gemm(library.value(), pool, 1), problem) ? 0 : 1;
        }
      });
    }
    threads.clear();
    std::exit(wrong == 0 ? 0 : 1);
  };
  EXPECT_EXIT(load(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tern::cpu
