// Lifecycle of the bridge: invalidation, drops and threads.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "backend/gpu/vendor/fake_device_test.h"

namespace tern::gpu {
namespace {

using backend::GemmPlan;
using backend::test::GemmCase;
using backend::test::TestProblem;
using test::FakeContext;
using test::FakeDevice;
using test::is_right;
using test::run;
using test::Step;
using namespace std::chrono_literals;

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
