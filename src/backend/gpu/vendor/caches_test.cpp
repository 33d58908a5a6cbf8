// Caches of the bridge: identity, bounds, and what stays after a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "backend/gpu/vendor/fake_device_test.h"
#include "backend/gpu/vendor/lru_table.h"

namespace tern::gpu {
namespace {

using backend::test::GemmCase;
using backend::test::TestProblem;
using test::Failure;
using test::FakeContext;
using test::FakeDevice;
using test::is_right;
using test::run;
using test::Step;
using testing::HasSubstr;

struct IntKey {
  int value;
  friend bool operator==(const IntKey&, const IntKey&) = default;
};
std::uint64_t hash_of(const IntKey& key) { return static_cast<std::uint64_t>(key.value); }

TEST(VendorCaches, TheTableAgreesWithAModelWhateverTheHash) {
  for (const std::uint64_t mask : {~std::uint64_t{0}, std::uint64_t{0}}) {
    using Table = LruTable<IntKey, int>;
    constexpr std::size_t kBound = 8;
    Table table(kBound, mask);
    std::vector<std::pair<int, int>> model;  // most recent first
    std::uint32_t state = 1;
    for (int step = 0; step < 20000; ++step) {
      state = state * 1664525u + 1013904223u;
      const int key = static_cast<int>(state >> 28);
      const auto at =
          std::find_if(model.begin(), model.end(), [&](auto& e) { return e.first == key; });
      if (auto* node = table.find({key})) {
        ASSERT_NE(at, model.end());
        ASSERT_EQ(node->value, at->second);
        std::rotate(model.begin(), at, at + 1);
        if ((state >> 20) % 4 == 0) {
          ASSERT_NE(table.take({key}), nullptr);
          model.erase(model.begin());
        }
      } else {
        ASSERT_EQ(at, model.end());
        table.insert(std::make_unique<Table::Node>(IntKey{key}, step));
        model.insert(model.begin(), {key, step});
        const auto dropped = table.shrink(kBound);
        ASSERT_EQ(dropped.empty(), model.size() <= kBound);
        if (model.size() > kBound) model.pop_back();
      }
      ASSERT_EQ(table.size(), model.size());
    }
    (void)table.take_if([](const Table::Node& node) { return node.key.value % 2 == 0; });
    for (const auto& [key, value] : model)
      ASSERT_EQ(table.find({key}) != nullptr, key % 2 != 0) << value;
  }
}

TEST(VendorCaches, Br04_W1_TwoDescriptorsForF32OfCAndF16OfCPlus2) {
  for (const std::uint64_t mask : {~std::uint64_t{0}, std::uint64_t{0}}) {
    const FakeDevice device;
    const auto bridge = device.executable({.hash_mask = mask});
    const auto memory = backend::test::poisoned(1, 1 << 16);
    for (std::uint64_t c = 1; c <= 300; ++c) {
      for (const bool is_half : {false, true}) {
        // The same rows and the same buffer: cols * 8 + dtype once were one number.
        TestProblem p({.m = 2,
                       .n = is_half ? c + 2 : c,
                       .k = 1,
                       .a = is_half ? Dtype::kF16 : Dtype::kF32,
                       .b = is_half ? Dtype::kF16 : Dtype::kF32,
                       .seed = c});
        const std::byte* from = backend::test::data_of(p.problem.b);
        std::memcpy(memory->data(), from, p.problem.n() * size_of(p.problem.b.dtype));
        const backend::AllocationRef own = p.problem.b.memory;
        p.problem.b.memory = memory;
        p.problem.b.offset = 0;
        ASSERT_TRUE(is_right(*bridge, p));
      }
    }
    EXPECT_EQ(device.vendor->violations(), 0);
  }
}

TEST(VendorCaches, B2_EachFieldOfAKeyTellsObjectsApart) {
  // Every variation of one problem, in one executable, in one bucket, twice: a key that lacked a
  // field would hand out another variation's object.
  const FakeDevice device;
  device.vendor->row.activations = 31;
  device.vendor->row.has_bias_f32 = true;
  const auto bridge = device.executable({.hash_mask = 0});
  const GemmCase base{.m = 4, .n = 4, .k = 4, .batch = 2, .beta = 1};
  std::vector<GemmCase> cases(17, base);
  cases[1].m = 5;
  cases[2].n = 5;
  cases[3].k = 5;
  cases[4].a = cases[4].b = Dtype::kF16;
  cases[5].a = cases[5].b = Dtype::kBf16;
  cases[6].is_a_transposed = true;
  cases[7].is_b_transposed = true;
  cases[8].batch = 3;
  cases[9].repeats_a = true;
  cases[10].padding = 1;
  cases[11].alpha = 3;
  cases[12].beta = 2;
  cases[13].beta = 0;
  cases[14].is_c_apart = true;
  cases[15].has_bias = true;
  cases[16].activation = backend::Activation::kSilu;
  std::vector<std::unique_ptr<TestProblem>> problems;
  for (const GemmCase& c : cases) problems.push_back(std::make_unique<TestProblem>(c));
  for (int round = 0; round < 2; ++round) {
    for (const auto& problem : problems) EXPECT_TRUE(is_right(*bridge, *problem));
  }
  EXPECT_EQ(device.vendor->violations(), 0);
  // The second round made nothing.
  EXPECT_EQ(device.vendor->made(Step::kPlan), device.vendor->live(Step::kPlan));
  EXPECT_EQ(device.vendor->made(Step::kView), device.vendor->live(Step::kView));
  EXPECT_EQ(device.vendor->made(Step::kKernel), device.vendor->live(Step::kKernel));
  EXPECT_GE(device.vendor->live(Step::kPlan), 14);
}

TEST(VendorCaches, W26_ASecondEncodeMakesNothing) {
  const FakeDevice device;
  const auto bridge = device.executable();
  TestProblem problem({.n = 6, .b = Dtype::kF16});
  EXPECT_TRUE(is_right(*bridge, problem));
  const std::array before = {device.vendor->made(Step::kPlan), device.vendor->made(Step::kKernel),
                             device.vendor->made(Step::kDescriptor)};
  EXPECT_TRUE(is_right(*bridge, problem));
  EXPECT_EQ(before[0], device.vendor->made(Step::kPlan));
  EXPECT_EQ(before[1], device.vendor->made(Step::kKernel));
  EXPECT_EQ(before[2], device.vendor->made(Step::kDescriptor));
}

TEST(VendorCaches, W6_W7_BoundsHoldAndWhatGoesIsReleased) {
  const FakeDevice device;
  const BridgeBounds bounds{.plans = 4, .kernels = 3, .views = 10, .descriptors = 5};
  {
    const auto bridge = device.executable(bounds);
    for (std::uint64_t i = 0; i < 40; ++i) {
      TestProblem problem({.m = 1 + i % 20, .n = 3, .k = 2, .seed = i});
      EXPECT_TRUE(is_right(*bridge, problem));
      const BridgeCounts counts = bridge->counts();
      EXPECT_LE(counts.plans, 4u);
      EXPECT_LE(counts.kernels, 3u);
      EXPECT_LE(counts.views, 10u);
      EXPECT_LE(counts.descriptors, 5u);
      EXPECT_EQ(device.vendor->live(Step::kPlan), static_cast<int>(counts.plans));
      EXPECT_EQ(device.vendor->live(Step::kKernel), static_cast<int>(counts.kernels));
      EXPECT_EQ(device.vendor->live(Step::kView), static_cast<int>(counts.views));
    }
  }
  EXPECT_EQ(device.vendor->live(), 0);
}

TEST(VendorCaches, Br07_W7_OffsetsThatChangeEachStepLeaveTheCacheAlone) {
  const FakeDevice device;
  const auto bridge = device.executable();
  TestProblem weights({.m = 1, .n = 4, .k = 4});
  const auto cache = backend::test::poisoned(1, 16 * 10000);
  TestProblem problem({.m = 1, .n = 4, .k = 4});
  int live = 0;
  for (std::uint64_t step = 0; step < 10000; ++step) {
    backend::GemmProblem p = problem.problem;
    p.a.memory = cache;
    p.a.offset = 16 * step;
    p.a.is_transient = true;
    FakeContext context(1, 0);
    bridge->encode(bridge->plan(p).value(), context).value();
    (void)context.complete(Error(ErrorCode::kCancelled, "only encoded"));
    if (step == 10) live = device.vendor->live();
  }
  EXPECT_EQ(device.vendor->live(), live);
  EXPECT_EQ(bridge->counts().views, 2u);  // B and D
  EXPECT_LE(bridge->counts().plans, 5u);  // one per alignment of the offset
}

TEST(VendorCaches, Br05_W8_W10_EveryStepFailsOnceInEveryWayAndNothingStays) {
  for (int step = 0; step < test::kSteps; ++step) {
    if (static_cast<Step>(step) == Step::kProbe) continue;
    for (const Failure how :
         {Failure::kError, Failure::kNull, Failure::kThrow, Failure::kThrowOddly}) {
      for (const int nth : {1, 2}) {
        const FakeDevice device;
        const auto bridge = device.executable();
        // Two conversions, a loop of two products, an epilogue: each step happens at least twice.
        device.vendor->row.has_batches = false;
        TestProblem problem({.m = 3,
                             .n = 4,
                             .k = 5,
                             .a = Dtype::kF16,
                             .b = Dtype::kBf16,
                             .batch = 2,
                             .has_bias = true});
        TestProblem other({.m = 6, .n = 4, .k = 5});
        device.vendor->fail_nth(static_cast<Step>(step), nth, how);
        bool has_failed = false;
        for (int i = 0; i < 2 && !has_failed; ++i) {
          const Result<void> result = run(*bridge, i == 0 ? problem : other);
          if (result.ok()) continue;
          has_failed = true;
          EXPECT_THAT(result.error().message(), HasSubstr("test product: "));
          const char* text = how == Failure::kError        ? "injected error"
                             : how == Failure::kThrow      ? "injected exception"
                             : how == Failure::kThrowOddly ? "unknown exception"
                                                           : "";
          EXPECT_THAT(result.error().message(), HasSubstr(text));
        }
        const bool happens_once = static_cast<Step>(step) == Step::kEpilogue;
        EXPECT_EQ(has_failed, nth == 1 || !happens_once) << step << " " << nth;
        EXPECT_EQ(bridge->counts().kernels_in_use, 0u);
        EXPECT_EQ(bridge->counts().encodes, 0u);
        device.vendor->fail_nth(static_cast<Step>(step), 0, how);
        // From any thread it works now.
        std::thread([&] { EXPECT_TRUE(is_right(*bridge, problem)); }).join();
        EXPECT_TRUE(is_right(*bridge, other));
        EXPECT_EQ(device.vendor->violations(), 0);
      }
    }
  }
}

TEST(VendorCaches, Br05_AFailureOnOneThreadLeavesTheOthersAlone) {
  const FakeDevice device;
  const auto bridge = device.executable();
  std::atomic<int> failed{0};
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      TestProblem problem({.m = 2 + t, .n = 3, .k = 4, .seed = t});
      for (int i = 0; i < 50; ++i) {
        if (t == 0) device.vendor->fail_nth(Step::kProduct, 1, Failure::kThrow);
        problem.restore();
        const Result<void> result = run(*bridge, problem);
        if (!result.ok()) {
          ++failed;
        } else if (!problem.is_right()) {
          ++wrong;
        }
      }
    });
  }
  threads.clear();
  EXPECT_GT(failed, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(bridge->counts().kernels_in_use, 0u);
}

}  // namespace
}  // namespace tern::gpu
