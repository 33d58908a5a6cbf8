// The device through the interface of backends: the small program, submissions, threads, memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "swmetal/swmetal.h"
#include "tests/parity/metal/small_program.h"

namespace tern::metal_tests {
namespace {

class MetalDevice : public testing::Test {
 protected:
  void SetUp() override { swm_reset(); }
  void TearDown() override { swm_reset(); }
};

// The norm may differ in its last bits, and then a quantised value by one step: class Q.
void expect_close(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double d = static_cast<double>(found[i]) - static_cast<double>(expected[i]);
    error += d * d;
    size += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  EXPECT_GT(size, 1e-3) << "zeros must not pass";
  EXPECT_LE(std::sqrt(error), 1e-3 * std::sqrt(size));
}

TEST_F(MetalDevice, TheSmallProgramAgreesWithTheReference) {
  SmallModel model(256, 100, 1);
  const Loaded l = load(model, model.program()).value();
  for (const std::int32_t id : {0, 7, 99}) {
    const auto logits = step(l, block({3, 5, id})).value();
    const auto expected = model.logits(id);
    expect_close(logits, expected);
    EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(),
              std::max_element(expected.begin(), expected.end()) - expected.begin());
  }
}

TEST_F(MetalDevice, ARowAmongOthersHasTheBitsOfTheRowAlone) {
  SmallModel model(384, 50, 2);
  const Loaded l = load(model, model.program()).value();
  const auto alone = step(l, block({9})).value();
  EXPECT_EQ(step(l, block({1, 2, 9})).value(), alone);
  EXPECT_EQ(step(l, block({4, 3, 2, 9})).value(), alone);
  EXPECT_EQ(step(l, block({9})).value(), alone);
}

TEST_F(MetalDevice, EveryRowThatIsAskedForIsThere) {
  SmallModel model(256, 64, 3);
  const Loaded l = load(model, model.program()).value();
  program::BatchBlock b = block({5, 6, 7});
  b.output_rows = {0, 2};
  const auto s = l.device->submit(*l.executable, b, {}).value();
  l.device->wait(*l.executable, s, backend::kNoDeadline).value();
  const backend::OutputRows rows = l.device->output(*l.executable, s, 0).value();
  ASSERT_EQ(rows.rows, 2);
  ASSERT_EQ(rows.width, 64);
  for (std::int64_t r = 0; r < 2; ++r) {
    const auto row = rows.row(r);
    expect_close({row.begin(), row.end()}, model.logits(r == 0 ? 5 : 7));
  }
}

TEST_F(MetalDevice, C21_AStepIsOneCommandBufferWithOneEncoder) {
  SmallModel model(256, 40, 4);
  const Loaded l = load(model, model.program()).value();
  const auto buffers = swm_count(SWM_COMMAND_BUFFER);
  const auto commits = swm_count(SWM_COMMIT);
  const auto dispatches = swm_count(SWM_DISPATCH);
  const auto allocations = swm_count(SWM_ALLOCATION);
  const auto pipelines = swm_count(SWM_PIPELINE);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(step(l, block({1, 2})).ok());
  EXPECT_EQ(swm_count(SWM_COMMAND_BUFFER) - buffers, 5U);
  EXPECT_EQ(swm_count(SWM_COMMIT) - commits, 5U);
  // embed, norm, quantise, product with residual, gather, quantise, product
  EXPECT_EQ(swm_count(SWM_DISPATCH) - dispatches, 5U * 7U);
  EXPECT_EQ(swm_count(SWM_ALLOCATION), allocations) << "a step allocates nothing";
  EXPECT_EQ(swm_count(SWM_PIPELINE), pipelines) << "a step makes no pipeline";
}

TEST_F(MetalDevice, Ps29_ExecutablesOfOneDeviceShareTheLibraryAndItsPipelines) {
  SmallModel model(256, 40, 5);
  const auto device = open_device().value();
  const Loaded first = load(model, model.program(), device).value();
  const auto pipelines = swm_count(SWM_PIPELINE);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(load(model, model.program(), device).ok());
  EXPECT_EQ(swm_count(SWM_PIPELINE), pipelines);
  EXPECT_EQ(swm_count(SWM_LIBRARY), 1U);
}

TEST_F(MetalDevice, ABadBlockIsRefusedBeforeAKernelSeesIt) {
  SmallModel model(256, 40, 6);
  const Loaded l = load(model, model.program()).value();
  for (const std::int32_t id : {-1, 40}) {
    const auto s = l.device->submit(*l.executable, block({id}), {});
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(l.device->submit(*l.executable, block({1, 2, 3, 4, 5}), {}).ok());
  program::BatchBlock b = block({1});
  b.output_rows = {1};
  EXPECT_FALSE(l.device->submit(*l.executable, b, {}).ok());
  EXPECT_TRUE(step(l, block({1})).ok());
}

TEST_F(MetalDevice, AStepInFlightIsWaitedForOnceAndMayOutliveADeadline) {
  SmallModel model(256, 40, 7);
  const Loaded l = load(model, model.program()).value();
  const auto s = l.device->submit(*l.executable, block({1}), {}).value();
  EXPECT_FALSE(l.device->submit(*l.executable, block({1}), {}).ok()) << "one step at a time";
  EXPECT_FALSE(l.device->output(*l.executable, s, 0).ok()) << "not before it was waited for";
  Result<void> waited = l.device->wait(*l.executable, s, std::chrono::steady_clock::now());
  while (!waited.ok() && waited.error().code() == ErrorCode::kDeadline)
    waited = l.device->wait(*l.executable, s,
                            std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  EXPECT_TRUE(waited.ok());
  EXPECT_FALSE(l.device->wait(*l.executable, s, backend::kNoDeadline).ok());
  EXPECT_TRUE(l.device->output(*l.executable, s, 0).ok());
  EXPECT_FALSE(l.device->output(*l.executable, s, 1).ok());
  CancelToken cancel = CancelToken::make();
  cancel.request();
  EXPECT_EQ(l.device->submit(*l.executable, block({1}), cancel).error().code(),
            ErrorCode::kCancelled);
}

TEST_F(MetalDevice, AnExecutableMayGoWhileItsStepRuns) {
  SmallModel model(256, 40, 8);
  Loaded l = load(model, model.program()).value();
  (void)l.device->submit(*l.executable, block({1, 2, 3}), {}).value();
  l.executable.reset();
  l.device.reset();
}

TEST_F(MetalDevice, UploadTellsItsProgressAndCanBeCancelled) {
  SmallModel model(256, 1000, 9);
  const auto device = open_device().value();
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  bool is_finished = false;
  const auto weights = device->upload(model.weights(),
                                      [&](const Progress& p) {
                                        done = p.done;
                                        total = p.total;
                                        is_finished = p.finished;
                                      },
                                      {});
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(done, total);
  EXPECT_TRUE(is_finished);
  std::uint64_t file_bytes = 0;
  for (const auto& d : model.weights().weights) file_bytes += d.file_bytes();
  EXPECT_EQ(total, file_bytes);
  EXPECT_EQ((*weights)->bytes(),
            metal::MetalBackend().estimate(model.weights(), device->profile()).bytes);
  CancelToken cancel = CancelToken::make();
  cancel.request();
  EXPECT_EQ(device->upload(model.weights(), {}, cancel).error().code(), ErrorCode::kCancelled);
}

TEST_F(MetalDevice, F19_AScaleThatIsNotFiniteIsNamed) {
  SmallModel model(256, 1000, 10);
  const std::uint16_t infinity = 0x7C00;
  std::memcpy(&model.table_blocks()[1234 * 18], &infinity, 2);
  const auto device = open_device().value();
  const auto weights = device->upload(model.weights(), {}, {});
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.error().code(), ErrorCode::kInvalidFile);
  EXPECT_NE(weights.error().message().find("'table' block 1234"), std::string::npos)
      << weights.error().message();
}

TEST_F(MetalDevice, C73_WeightsAreSplitOverBuffersWhereOneIsTooLarge) {
  SmallModel model(256, 500, 11);
  const auto expected = step(load(model, model.program()).value(), block({3})).value();
  // The table takes 18,176 bytes, the others less.
  const swm_device small{"Software Metal (test only)", "", 9, 1, 1ULL << 30, 20'000};
  swm_set_device(&small);
  const Loaded l = load(model, model.program()).value();
  EXPECT_EQ(step(l, block({3})).value(), expected);
  const swm_device tiny{"Software Metal (test only)", "", 9, 1, 1ULL << 30, 17'000};
  swm_set_device(&tiny);
  const auto refused = load(model, model.program());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("weight table"), std::string::npos)
      << refused.error().message();
}

TEST_F(MetalDevice, DiagnosticsTimeEveryOpAndFindTheFirstThatIsNotFinite) {
  SmallModel model(256, 40, 12);
  const Loaded l = load(model, model.program()).value();
  const auto seconds = l.device->time_steps(*l.executable, block({1}), 3).value();
  EXPECT_EQ(seconds.size(), l.executable->plan().program.ops.size());
  EXPECT_EQ(l.device->first_non_finite(*l.executable, block({1})).value(), "");
  // A norm of infinite weights.
  auto& norm = model.weights().weights[1];
  const std::vector<float> infinite(256, std::numeric_limits<float>::infinity());
  norm.parts[0].bytes = std::as_bytes(std::span(infinite));
  const Loaded bad = load(model, model.program()).value();
  EXPECT_EQ(bad.device->first_non_finite(*bad.executable, block({1})).value(),
            "rms_norm in layer 0");
}

TEST_F(MetalDevice, Br01_TwoModelsInTurnGiveTheirOwnResults) {
  SmallModel a(256, 40, 13);
  SmallModel b(384, 30, 14);
  const auto first_a = step(load(a, a.program()).value(), block({7})).value();
  const auto first_b = step(load(b, b.program()).value(), block({7})).value();
  const auto device = open_device().value();
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(step(load(a, a.program(), device).value(), block({7})).value(), first_a);
    ASSERT_EQ(step(load(b, b.program(), device).value(), block({7})).value(), first_b);
  }
}

TEST_F(MetalDevice, Br02_OneThreadStepsWhileAnotherLoadsAndDrops) {
  SmallModel model(256, 40, 15);
  const auto device = open_device().value();
  const Loaded l = load(model, model.program(), device).value();
  const auto expected = step(l, block({5})).value();
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) {
      const Loaded mine = load(model, model.program(), device).value();
      EXPECT_EQ(step(mine, block({5})).value(), expected);
    }
  });
  for (int i = 0; i < 30; ++i) EXPECT_EQ(step(l, block({5})).value(), expected);
  is_over = true;
  other.join();
}

TEST_F(MetalDevice, Br03_ManyThreadsOnOneDeviceGiveRightValues) {
  SmallModel model(256, 40, 16);
  const auto device = open_device().value();
  std::vector<std::vector<float>> expected;
  {
    const Loaded l = load(model, model.program(), device).value();
    for (std::int32_t id = 0; id < 8; ++id) expected.push_back(step(l, block({id})).value());
  }
  std::vector<std::thread> threads;
  for (std::int32_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const Loaded l = load(model, model.program(), device).value();
      for (int i = 0; i < 5; ++i)
        EXPECT_EQ(step(l, block({t})).value(), expected[static_cast<std::size_t>(t)]);
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(MetalDevice, SeveralEnginesInOneProcessDoNotDisturbEachOther) {
  SmallModel a(256, 40, 17);
  SmallModel b(256, 40, 18);
  const Loaded first = load(a, a.program()).value();
  const auto expected = step(first, block({2})).value();
  {
    const Loaded second = load(b, b.program()).value();
    EXPECT_NE(step(second, block({2})).value(), expected);
    EXPECT_EQ(step(first, block({2})).value(), expected);
  }
  EXPECT_EQ(step(first, block({2})).value(), expected);
  // Weights of one device are refused by another.
  const auto other = open_device().value();
  const auto plan =
      metal::MetalBackend().plan(a.program(), other->profile(), plan_options()).value();
  const auto refused = other->load(plan, first.device->upload(a.weights(), {}, {}).value(),
                                   other->make_states({}, {}).value());
  EXPECT_FALSE(refused.ok());
}

// A sanitizer keeps what was freed, and takes its time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

TEST_F(MetalDevice, Br07_TenThousandStepsLeaveNothing) {
  swm_set_workers(1);
  SmallModel model(128, 8, 19);
  const Loaded l = load(model, model.lookup()).value();
  const program::BatchBlock b = block({3});
  const auto expected = model.embedding(3);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(step(l, b).value(), expected);
  const std::uint64_t objects = swm_live_objects(nullptr);
  const std::uint64_t before = resident_bytes();
  // The other orders change nothing about memory and take a tenth of it.
  const bool is_whole = swm_get_order() == SWM_ORDER_FORWARD && !kIsSanitized;
  const int steps = is_whole ? 10'000 : 1'000;
  for (int i = 0; i < steps; ++i) ASSERT_TRUE(step(l, b).ok());
  EXPECT_EQ(step(l, b).value(), expected);
  EXPECT_LE(live_objects(nullptr, objects), objects);
  const std::uint64_t grown = resident_bytes() - std::min(before, resident_bytes());
  EXPECT_LE(kIsSanitized ? 0 : grown, std::uint64_t{1} << 20);
}

TEST_F(MetalDevice, EverythingIsGivenBack) {
  SmallModel model(256, 40, 20);
  ASSERT_TRUE(step(load(model, model.program()).value(), block({1})).ok());
  EXPECT_EQ(live_objects("SwmBuffer", 0), 0U);
  EXPECT_EQ(live_objects("SwmCommandBuffer", 0), 0U);
  const std::uint64_t objects = swm_live_objects(nullptr);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(step(load(model, model.program()).value(), block({1})).ok());
  EXPECT_EQ(live_objects("SwmBuffer", 0), 0U);
  EXPECT_LE(live_objects(nullptr, objects), objects);
}

}  // namespace
}  // namespace tern::metal_tests
