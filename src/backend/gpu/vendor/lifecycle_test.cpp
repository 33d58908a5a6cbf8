// Caches and lifecycle of the bridge: identity, bounds, failures, invalidation, drops and threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <map>
#include <thread>

#include "backend/gpu/vendor/bridge.h"
#include "backend/gpu/vendor/fake_vendor_test.h"
#include "backend/gpu/vendor/lru_table.h"
#include "backend/vendor_gemm_test_problem.h"
#include "base/error.h"

namespace tern::gpu {
namespace {

using backend::GemmPlan;
using backend::test::GemmCase;
using backend::test::TestProblem;
using test::Failure;
using test::FakeContext;
using test::FakeVendor;
using test::Step;
using testing::HasSubstr;
using namespace std::chrono_literals;

// A device: its library and its active threads; executables are bridges on it.
struct FakeDevice {
  explicit FakeDevice(std::uint64_t number = 1) : vendor(std::make_shared<FakeVendor>(number)) {}
  [[nodiscard]] std::unique_ptr<VendorBridge> executable(const BridgeBounds& bounds = {}) const {
    return make_vendor_bridge(vendor, threads, bounds);
  }
  std::shared_ptr<FakeVendor> vendor;
  std::shared_ptr<ActiveThreads> threads = std::make_shared<ActiveThreads>();
};

Result<void> run(VendorBridge& bridge, TestProblem& problem) {
  TERN_ASSIGN(const GemmPlan plan, bridge.plan(problem.problem));
  FakeContext context(problem.problem.d.memory->device(), plan.workspace_bytes);
  TERN_TRY(bridge.encode(plan, context));
  return context.complete();
}

testing::AssertionResult is_right(VendorBridge& bridge, TestProblem& problem) {
  problem.restore();
  const Result<void> result = run(bridge, problem);
  if (!result.ok()) return testing::AssertionFailure() << result.error().message();
  return problem.is_right();
}

// Blocks encodes of the marked product until it is opened.
struct Hold {
  std::promise<void> entered;
  std::promise<void> opened;
  std::shared_future<void> open{opened.get_future()};
  std::atomic<bool> is_armed{true};
  std::function<void(const ProductCall&)> hook(std::uint64_t m) {
    return [this, m](const ProductCall& call) {
      if (call.m != m || !is_armed.exchange(false)) return;
      entered.set_value();
      open.wait();
    };
  }
};

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

TEST(VendorLifecycle, Br01_W2_AlternatingModelsOnReusedAddressesAreBitEqual) {
  const FakeDevice device;
  std::map<int, std::vector<double>> first;
  std::vector<std::byte> place(4096);  // every model's memory lies at the same addresses
  for (int round = 0; round < 100; ++round) {
    const int model = round % 2;
    const auto bridge = device.executable();
    TestProblem source({.m = 3,
                        .n = 3 + static_cast<std::uint64_t>(model),
                        .k = 4,
                        .seed = static_cast<std::uint64_t>(model + 1)});
    const std::uint64_t bytes = source.problem.n() * 4 * sizeof(float);
    std::memcpy(place.data(), backend::test::data_of(source.problem.b), bytes);
    source.problem.b.memory = std::make_shared<backend::HostAllocation>(1, place.data(), bytes);
    source.problem.b.offset = 0;
    ASSERT_TRUE(is_right(*bridge, source));
    const auto [at, is_new] = first.emplace(model, source.result());
    EXPECT_EQ(source.result(), at->second);
  }
  EXPECT_EQ(device.vendor->live(), 0);
}

TEST(VendorLifecycle, W2_OneExecutableAndAReusedAddressStillMeanTwoAllocations) {
  const FakeDevice device;
  const auto bridge = device.executable();
  std::vector<std::byte> place(4096);
  for (std::uint64_t round = 0; round < 50; ++round) {
    TestProblem p({.m = 3, .n = 3, .k = 4, .seed = round});
    std::memcpy(place.data(), backend::test::data_of(p.problem.b), 48);
    const auto memory = std::make_shared<backend::HostAllocation>(1, place.data(), 48);
    p.problem.b.memory = memory;
    p.problem.b.offset = 0;
    ASSERT_TRUE(is_right(*bridge, p));
    EXPECT_GT(memory.use_count(), 2);  // the cached view holds it alive
    bridge->drop_allocation(memory->id());
    EXPECT_EQ(memory.use_count(), 2);  // this test and its problem
  }
  EXPECT_EQ(device.vendor->violations(), 0);
}

TEST(VendorLifecycle, W4_ADropOrResetTouchesOneExecutableOnly) {
  const FakeDevice device;
  auto a = device.executable();
  auto b = device.executable();
  TestProblem problem({});
  EXPECT_TRUE(is_right(*a, problem));
  EXPECT_TRUE(is_right(*b, problem));
  const BridgeCounts before = b->counts();
  const int made = device.vendor->made(Step::kView);
  a->reset();
  EXPECT_EQ(a->counts().views + a->counts().plans + a->counts().kernels, 0u);
  a.reset();
  EXPECT_EQ(b->counts().views, before.views);
  EXPECT_TRUE(is_right(*b, problem));
  EXPECT_EQ(device.vendor->made(Step::kView), made);
}

TEST(VendorLifecycle, W3_ResetFreesAndAPlanMadeBeforeStaysGood) {
  const FakeDevice device;
  const auto bridge = device.executable();
  TestProblem problem({});
  const GemmPlan plan = bridge->plan(problem.problem).value();
  for (int round = 0; round < 3; ++round) {
    problem.restore();
    FakeContext context(1, 0);
    bridge->encode(plan, context).value();
    bridge->reset();  // between encode and completion: submitted work keeps what it needs
    EXPECT_GT(device.vendor->live(), 0);
    context.complete().value();
    EXPECT_TRUE(problem.is_right());
    EXPECT_EQ(device.vendor->live(), 0);
  }
  EXPECT_EQ(device.vendor->violations(), 0);
}

TEST(VendorLifecycle, B3_MemoryOfSubmittedWorkLivesUntilItHasCompleted) {
  const FakeDevice device;
  auto bridge = device.executable();
  auto problem = std::make_unique<TestProblem>(GemmCase{.b = Dtype::kF16, .has_bias = true});
  GemmPlan plan = bridge->plan(problem->problem).value();
  const std::weak_ptr<const backend::Allocation> weights = problem->problem.b.memory;
  FakeContext context(1, plan.workspace_bytes);
  bridge->encode(plan, context).value();
  bridge.reset();  // the executable, the plan and the problem go before the work has run
  plan = GemmPlan();
  problem.reset();
  EXPECT_FALSE(weights.expired());
  context.complete().value();
  EXPECT_TRUE(weights.expired());
  EXPECT_EQ(device.vendor->violations(), 0);
  EXPECT_EQ(device.vendor->live(), 0);
}

TEST(VendorLifecycle, Br02_AnInvalidationWaitsForOldEncodesAndStallsNoNewOnes) {
  const FakeDevice device;
  const auto bridge = device.executable();
  TestProblem slow({.m = 7});
  TestProblem quick({.m = 5});
  EXPECT_TRUE(is_right(*bridge, quick));
  Hold hold;
  device.vendor->on_product = hold.hook(7);
  std::jthread encoder([&] { EXPECT_TRUE(is_right(*bridge, slow)); });
  hold.entered.get_future().wait();
  std::atomic<bool> has_reset{false};
  std::jthread invalidator([&] {
    bridge->reset();
    has_reset = true;
  });
  while (bridge->counts().generation == 0) std::this_thread::yield();
  EXPECT_EQ(bridge->counts().plans, 0u);  // not handed out any more, at once
  // A stream of new encodes runs on, and does not count as old.
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(is_right(*bridge, quick));
  EXPECT_GT(bridge->counts().plans, 0u);
  EXPECT_FALSE(has_reset);
  hold.opened.set_value();
  invalidator.join();
  EXPECT_TRUE(has_reset);
  EXPECT_EQ(bridge->counts().kernels_in_use, 0u);
}

TEST(VendorLifecycle, B3_AStreamOfEncodesCannotStarveAnInvalidation) {
  const FakeDevice device;
  const auto bridge = device.executable();
  std::atomic<bool> is_over{false};
  // At every moment at least one of three overlapping encodes runs.
  device.vendor->on_product = [](const ProductCall&) { std::this_thread::sleep_for(1ms); };
  std::vector<std::jthread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      TestProblem problem({.m = 2 + t});
      while (!is_over) wrong += is_right(*bridge, problem) ? 0 : 1;
    });
  }
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) bridge->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  is_over = true;
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(VendorLifecycle, Br02_OneThreadEncodesWhileAnotherMakesAndDropsExecutables) {
  const FakeDevice device;
  const auto bridge = device.executable();
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::jthread other([&] {
    TestProblem problem({.m = 9});
    while (!is_over) {
      const auto mine = device.executable();
      wrong += is_right(*mine, problem) ? 0 : 1;
    }
  });
  TestProblem problem({.m = 5, .has_bias = true});
  for (int i = 0; i < 300; ++i) wrong += is_right(*bridge, problem) ? 0 : 1;
  is_over = true;
  other.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(device.vendor->violations(), 0);
}

TEST(VendorLifecycle, Br03_W5_EightThreadsOnOneShapeAndEightOnDistinctOnes) {
  const FakeDevice device;
  const auto bridge = device.executable();
  std::atomic<int> wrong{0};
  {
    std::latch start(16);
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 16; ++t) {
      threads.emplace_back([&, t] {
        TestProblem problem({.m = t < 8 ? 6 : t, .n = 5, .k = 4, .seed = t + 1});
        start.arrive_and_wait();
        for (int i = 0; i < 40; ++i) wrong += is_right(*bridge, problem) ? 0 : 1;
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(device.vendor->violations(), 0);  // no kernel object was ever in two threads
  EXPECT_LE(bridge->counts().kernels, 16u);   // at most one per concurrent encode
  EXPECT_EQ(bridge->counts().kernels_in_use, 0u);
}

TEST(VendorLifecycle, B2_ThePoolGrowsToTheNumberOfConcurrentEncodes) {
  const FakeDevice device;
  const auto bridge = device.executable();
  std::latch all(4);
  std::atomic<bool> is_first{true};
  device.vendor->on_product = [&](const ProductCall&) {
    if (is_first) all.arrive_and_wait();
  };
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      TestProblem problem({.seed = t});
      EXPECT_TRUE(is_right(*bridge, problem));
    });
  }
  threads.clear();
  EXPECT_EQ(bridge->counts().kernels, 4u);
  is_first = false;
  TestProblem problem({});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(is_right(*bridge, problem));
  EXPECT_EQ(device.vendor->made(Step::kKernel), 4);
}

TEST(VendorLifecycle, W9_AMissOnOneThreadHoldsNobodyUp) {
  const FakeDevice device;
  const auto bridge = device.executable();
  TestProblem slow({.m = 7});
  TestProblem quick({.m = 5});
  Hold hold;
  device.vendor->on_product = hold.hook(7);
  std::jthread encoder([&] { EXPECT_TRUE(is_right(*bridge, slow)); });
  hold.entered.get_future().wait();
  EXPECT_TRUE(is_right(*bridge, quick));  // misses in every cache while the other is inside
  hold.opened.set_value();
}

TEST(VendorLifecycle, Br48_ADropWaitsForEncodesOfOtherThreads) {
  const FakeDevice device;
  auto bridge = device.executable();
  TestProblem slow({.m = 7});
  Hold hold;
  device.vendor->on_product = hold.hook(7);
  std::atomic<bool> has_left{false};
  std::jthread encoder([&, raw = bridge.get()] {
    const GemmPlan plan = raw->plan(slow.problem).value();
    FakeContext context(1, 0);
    raw->encode(plan, context).value();
    has_left = true;
    context.complete().value();
  });
  hold.entered.get_future().wait();
  std::jthread opener([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(has_left);
    hold.opened.set_value();
  });
  bridge.reset();  // drops it, and returns when the encode has ended
  encoder.join();
  EXPECT_TRUE(slow.is_right());
  EXPECT_EQ(device.vendor->live(), 0);
}

TEST(VendorLifecycle, Br48_ADropFromACompletionHandlerDoesNotWait) {
  // The encode waits for the device, the device for its handler, and the handler drops the
  // executable: whoever waits here waits for ever.
  const FakeDevice device;
  auto bridge = device.executable();
  TestProblem problem({.m = 7});
  Hold hold;
  device.vendor->on_product = hold.hook(7);
  std::jthread encoder([&, raw = bridge.get()] {
    const GemmPlan plan = raw->plan(problem.problem).value();
    FakeContext context(1, 0);
    raw->encode(plan, context).value();
    context.complete().value();
  });
  hold.entered.get_future().wait();
  std::thread handler([&] {
    const ActiveThreads::Scope scope(*device.threads);
    bridge.reset();
  });
  handler.join();
  hold.opened.set_value();
  encoder.join();
  EXPECT_TRUE(problem.is_right());
  EXPECT_EQ(device.vendor->violations(), 0);
  EXPECT_EQ(device.vendor->live(), 0);
}

TEST(VendorLifecycle, Br48_ADropFromInsideItsOwnEncodeAndAcrossTwo) {
  const FakeDevice device;
  auto bridge = device.executable();
  TestProblem problem({.m = 7});
  device.vendor->on_product = [&](const ProductCall&) { bridge.reset(); };
  {
    VendorBridge* raw = bridge.get();
    const GemmPlan plan = raw->plan(problem.problem).value();
    FakeContext context(1, 0);
    raw->encode(plan, context).value();
    context.complete().value();
  }
  EXPECT_TRUE(problem.is_right());
  EXPECT_EQ(device.vendor->live(), 0);

  // Two threads, each inside its own encode, drop each other's executable.
  auto x = device.executable();
  auto y = device.executable();
  std::latch both(2);
  device.vendor->on_product = [&](const ProductCall& call) {
    both.arrive_and_wait();
    (call.m == 3 ? y : x).reset();
  };
  const auto encode = [&](VendorBridge* raw, std::uint64_t m) {
    TestProblem mine({.m = m});
    const GemmPlan plan = raw->plan(mine.problem).value();
    FakeContext context(1, 0);
    raw->encode(plan, context).value();
    context.complete().value();
    EXPECT_TRUE(mine.is_right());
  };
  std::thread first(encode, x.get(), 3);
  std::thread second(encode, y.get(), 4);
  first.join();
  second.join();
  EXPECT_EQ(device.vendor->live(), 0);
}

TEST(VendorLifecycle, W11_TwoDevicesDoNotShare) {
  const FakeDevice one(1);
  const FakeDevice two(2);
  const auto a = one.executable();
  const auto b = two.executable();
  TestProblem here({.device = 1});
  TestProblem there({.device = 2});
  EXPECT_TRUE(is_right(*a, here));
  EXPECT_TRUE(is_right(*b, there));
  EXPECT_EQ(one.vendor->violations() + two.vendor->violations(), 0);
}

}  // namespace
}  // namespace tern::gpu
