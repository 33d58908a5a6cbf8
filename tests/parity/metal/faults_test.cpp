// What does not work says so: no device, creations that fail, steps that fail, a device that is
// lost.
#include <gtest/gtest.h>

#include "swmetal/swmetal.h"
#include "tests/parity/metal/small_program.h"

namespace tern::metal_tests {
namespace {

class MetalFaults : public testing::Test {
 protected:
  void SetUp() override { swm_reset(); }
  void TearDown() override { swm_reset(); }

  // Opens, loads, and runs a step.
  Result<std::vector<float>> all() {
    TERN_ASSIGN(const Loaded l, load(model_, model_.program()));
    return step(l, block({3}));
  }
  SmallModel model_{256, 40, 1};
};

TEST_F(MetalFaults, NoDeviceIsASentence) {
  swm_set_no_device(1);
  const metal::MetalBackend backend(test_options());
  EXPECT_TRUE(backend.devices().empty());
  const auto info = backend.device_info();
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error().code(), ErrorCode::kDevice);
  EXPECT_NE(info.error().message().find("shows no Metal device"), std::string::npos);
}

TEST_F(MetalFaults, S5_TheEmulatorIsRefusedOutsideOfTests) {
  const metal::MetalBackend backend;
  EXPECT_TRUE(backend.devices().empty());
  const auto info = backend.device_info();
  ASSERT_FALSE(info.ok());
  EXPECT_NE(info.error().message().find("only tests may use"), std::string::npos);
}

TEST_F(MetalFaults, AnotherDeviceOrArchitectureIsRefused) {
  const metal::MetalBackend backend(test_options());
  backend::DeviceProfile profile = backend.devices().at(0);
  EXPECT_EQ(profile.name, "metal0");
  EXPECT_EQ(profile.architecture, "apple9");
  profile.name = "metal1";
  EXPECT_FALSE(backend.open(profile).ok());
  profile = backend.devices().at(0);
  profile.architecture = "apple7";
  EXPECT_FALSE(backend.open(profile).ok());
}

struct Fault {
  swm_event event;
  const char* name;
};
class EveryNth : public MetalFaults, public testing::WithParamInterface<Fault> {};

// The n-th call of a kind fails, for each n that there is: an error, nothing left behind, and the
// next try works.
TEST_P(EveryNth, FailsWithASentenceAndLeavesNothing) {
  const auto expected = all().value();
  EXPECT_EQ(live_objects("SwmBuffer", 0), 0U);
  EXPECT_EQ(live_objects("SwmCommandBuffer", 0), 0U);
  const std::uint64_t settled = swm_live_objects(nullptr);
  const std::uint64_t before = swm_count(GetParam().event);
  ASSERT_TRUE(all().ok());
  const std::uint64_t calls = swm_count(GetParam().event) - before;
  ASSERT_GT(calls, 0U);
  const std::uint64_t objects = live_objects(nullptr, settled);
  for (std::uint64_t n = 1; n <= calls; ++n) {
    swm_fail_nth(GetParam().event, n);
    const auto result = all();
    ASSERT_FALSE(result.ok()) << GetParam().name << " " << n;
    EXPECT_NE(result.error().message().find("[metal]"), std::string::npos)
        << result.error().message();
    swm_fail_nth(GetParam().event, 0);
    EXPECT_LE(live_objects(nullptr, objects), objects) << GetParam().name << " " << n;
  }
  EXPECT_EQ(all().value(), expected);
}
INSTANTIATE_TEST_SUITE_P(Metal, EveryNth,
                         testing::Values(Fault{SWM_ALLOCATION, "allocation"},
                                         Fault{SWM_FUNCTION, "function"},
                                         Fault{SWM_PIPELINE, "pipeline"}, Fault{SWM_QUEUE, "queue"},
                                         Fault{SWM_COMMAND_BUFFER, "command buffer"},
                                         Fault{SWM_COMMIT, "commit"}),
                         [](const auto& fault) {
                           std::string name = fault.param.name;
                           for (char& c : name) c = c == ' ' ? '_' : c;
                           return name;
                         });

TEST_F(MetalFaults, MemoryThatIsRefusedIsNamedWithNeedAndHave) {
  const auto device = open_device().value();
  swm_set_fail_allocations_above(1000);
  const auto weights = device->upload(model_.weights(), {}, {});
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.error().code(), ErrorCode::kOutOfMemory);
  const auto bytes = metal::MetalBackend().estimate(model_.weights(), device->profile()).bytes;
  EXPECT_NE(weights.error().message().find("the weights needs " + std::to_string(bytes)),
            std::string::npos)
      << weights.error().message();
  EXPECT_NE(weights.error().message().find("bytes free"), std::string::npos);
  swm_set_fail_allocations_above(0);
  EXPECT_TRUE(device->upload(model_.weights(), {}, {}).ok());
}

TEST_F(MetalFaults, Br08_AStepThatFailsGivesNoDataAndItsReason) {
  const Loaded l = load(model_, model_.program()).value();
  const auto expected = step(l, block({3})).value();
  swm_set_commit_error(2, "the GPU took too long");
  swm_fail_nth(SWM_COMMIT, 1);
  const auto s = l.device->submit(*l.executable, block({3}), {}).value();
  const auto waited = l.device->wait(*l.executable, s, backend::kNoDeadline);
  ASSERT_FALSE(waited.ok());
  const std::string& text = waited.error().message();
  EXPECT_EQ(waited.error().code(), ErrorCode::kDevice);
  EXPECT_NE(text.find("'step of small'"), std::string::npos) << text;
  EXPECT_NE(text.find("MTLCommandBufferErrorDomain 2"), std::string::npos) << text;
  EXPECT_NE(text.find("the GPU took too long"), std::string::npos) << text;
  EXPECT_FALSE(l.device->output(*l.executable, s, 0).ok());
  EXPECT_EQ(step(l, block({3})).value(), expected) << "a failed step is over";
}

TEST_F(MetalFaults, MemoryThatRunsOutInAStepIsThatError) {
  const Loaded l = load(model_, model_.program()).value();
  swm_set_commit_error(8, "insufficient memory");
  swm_fail_nth(SWM_COMMIT, 1);
  EXPECT_EQ(step(l, block({3})).error().code(), ErrorCode::kOutOfMemory);
}

TEST_F(MetalFaults, ADeviceThatIsLostSaysSoFromThenOn) {
  const auto device = open_device().value();
  const Loaded l = load(model_, model_.program(), device).value();
  const Loaded other = load(model_, model_.program(), device).value();
  const auto expected = step(l, block({3})).value();
  swm_lose_device();
  EXPECT_FALSE(step(l, block({3})).ok());
  swm_reset();  // it is there again, and another object
  for (const Loaded* loaded : {&l, &other}) {
    const auto again = step(*loaded, block({3}));
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().code(), ErrorCode::kDevice);
    EXPECT_NE(again.error().message().find("was lost"), std::string::npos);
  }
  EXPECT_FALSE(device->upload(model_.weights(), {}, {}).ok());
  EXPECT_EQ(all().value(), expected) << "a new engine works";
}

TEST_F(MetalFaults, AnOlderFamilyIsRefusedAtPlan) {
  const swm_device old{"Software Metal (test only)", "", 6, 1, 1ULL << 30, 1ULL << 30};
  swm_set_device(&old);
  const auto result = all();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(result.error().message().find("apple7"), std::string::npos) << result.error().message();
}

TEST_F(MetalFaults, KernelsAreMadeFromTheirSourceWhereNoLibraryLoads) {
  EXPECT_EQ(compile_from_source(metal::KernelId::kQuantizeI12), "");
}

}  // namespace
}  // namespace tern::metal_tests
