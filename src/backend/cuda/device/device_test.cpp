// The device on a fake driver: submissions, replay, failures of every kind, lost devices, memory.
#include <gtest/gtest.h>

#include <cstring>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/embed/embedded.h"
#include "backend/cuda/fake/fake_driver_test.h"
#include "program/builder.h"
#include "program/passes/passes.h"

namespace tern::cuda {
namespace {

using quant::Format;

constexpr std::int64_t kHidden = 256;
constexpr std::int64_t kVocabulary = 100;

// A small program on the fake: embed, norm, product, head.
class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (embedded_cubins().empty()) GTEST_SKIP() << "this build has no CUDA kernels";
    storage_.reserve(8);
    table_ = add("table", Format::kQ1G128, kVocabulary, kHidden,
                 program::kUseLookup | program::kUseMatmul);
    norm_ = add("norm", Format::kF32, 1, kHidden, program::kUseVector);
    wide_ = add("wide", Format::kQ1G128, kHidden, kHidden, program::kUseMatmul);
    program::Builder b("fake", {4, 1024}, 2, set_);
    b.region("layer", 0);
    const auto x = b.embed(table_);
    const auto y = b.add(x, b.linear(b.rms_norm(x, norm_, 1e-6F), wide_));
    b.region("head");
    b.output("logits", b.linear(b.gather_rows(y), table_));
    program_ = program::run_passes(std::move(b).finish(), program::Activations::kI12);
  }

  program::WeightId add(const char* name, Format format, std::int64_t rows, std::int64_t inputs,
                        int uses) {
    storage_.emplace_back(quant::bytes_for(format, static_cast<std::uint64_t>(rows * inputs)));
    return set_.add({name,
                     format,
                     rows,
                     inputs,
                     static_cast<std::uint8_t>(uses),
                     {{name, storage_.back(), rows}}});
  }

  [[nodiscard]] backend::PlanOptions plan_options() const {
    backend::PlanOptions options;
    options.limits = {4, 2, 2, 4};
    return options;
  }

  struct Loaded {
    std::unique_ptr<backend::Device> device;
    std::unique_ptr<backend::Executable> executable;
  };
  Result<Loaded> load(const DeviceOptions& options = {}) {
    const CudaBackend backend(fake_.api(), options);
    TERN_ASSIGN(const auto infos, backend.device_infos());
    Loaded l;
    TERN_ASSIGN(l.device, backend.open(infos[0].profile));
    TERN_ASSIGN(const auto plan, backend.plan(program_, infos[0].profile, plan_options()));
    TERN_ASSIGN(auto weights, l.device->upload(set_, {}, {}));
    TERN_ASSIGN(auto states, l.device->make_states({}, {}));
    TERN_ASSIGN(l.executable, l.device->load(plan, weights, states));
    return l;
  }

  static program::BatchBlock block(const std::vector<std::int32_t>& ids) {
    program::BatchBlock b;
    program::BatchSequence s;
    s.row_count = static_cast<std::uint32_t>(ids.size());
    b.add_sequence(s, ids.data(), nullptr);
    b.output_rows = {static_cast<std::uint32_t>(ids.size() - 1)};
    return b;
  }
  static Result<void> step(const Loaded& l, const program::BatchBlock& b) {
    TERN_ASSIGN(const auto s, l.device->submit(*l.executable, b, {}));
    return l.device->wait(*l.executable, s, backend::kNoDeadline);
  }

  FakeDriver fake_;
  program::WeightSet set_;
  program::Program program_;

 private:
  std::vector<std::vector<std::byte>> storage_;
  program::WeightId table_ = 0, norm_ = 0, wide_ = 0;
};

TEST_F(CudaDeviceTest, DevicesAreListedWithMemoryDriverAndArchitecture) {
  fake_.devices = 2;
  const auto infos = CudaBackend(fake_.api()).device_infos().value();
  ASSERT_EQ(infos.size(), 2U);
  EXPECT_EQ(infos[1].profile.name, "cuda1");
  EXPECT_EQ(infos[1].profile.architecture, "sm_90");
  EXPECT_EQ(infos[1].profile.memory_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(infos[1].profile.cores, 132);
  EXPECT_EQ(infos[1].driver, "13.0");
  EXPECT_EQ(infos[1].product, "Fake H200");
  ASSERT_TRUE(infos[1].profile.rates.has_value());
  EXPECT_NEAR(infos[1].profile.rates->bandwidth.value() / 1e9, 4917, 1);
}

TEST_F(CudaDeviceTest, C51_AProgramIsCapturedOnceAndReplayed) {
  const Loaded l = load().value();
  EXPECT_EQ(fake_.calls("cuStreamEndCapture"), 1);
  const int launches = fake_.calls("cuLaunchKernelEx");
  const int allocations = fake_.calls("cuMemAlloc") + fake_.calls("cuMemHostAlloc");
  const int events = fake_.calls("cuEventCreate");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(step(l, block({1, 2, 3})).ok());
  EXPECT_EQ(fake_.calls("cuLaunchKernelEx"), launches) << "a step launches the graph alone";
  EXPECT_EQ(fake_.calls("cuGraphLaunch"), 20);
  EXPECT_EQ(fake_.calls("cuMemAlloc") + fake_.calls("cuMemHostAlloc"), allocations);
  EXPECT_EQ(fake_.calls("cuEventCreate"), events);
  EXPECT_EQ(fake_.calls("cuStreamEndCapture"), 1);
  EXPECT_EQ(fake_.calls("cuStreamSynchronize") > 0, true);
}

TEST_F(CudaDeviceTest, AStepRunsItsKernelsInOrderWithTheBlockInPlace) {
  const Loaded l = load().value();
  std::vector<std::string> entries;
  std::vector<std::int32_t> ids(3);
  fake_.kernel = [&](const FakeDriver::Launched& launch) {
    entries.push_back(launch.entry);
    if (launch.entry != "embed_q1_g128") return;
    TernEmbedParams p{};
    std::memcpy(&p, launch.params.data(), sizeof p);
    const auto* counts = reinterpret_cast<const TernBatchCounts*>(launch.block);
    EXPECT_EQ(counts->rows, 3U);
    EXPECT_EQ(counts->output_rows, 1U);
    std::memcpy(ids.data(), reinterpret_cast<const void*>(launch.block + p.ids), 12);
  };
  ASSERT_TRUE(step(l, block({7, 99, 5})).ok());
  EXPECT_EQ(ids, (std::vector<std::int32_t>{7, 99, 5}));
  const std::vector<std::string> expected = {"embed_q1_g128",       "rms_norm",    "quantize_i12",
                                             "gemv_q1_g128_b1_mma", "gather_rows", "quantize_i12",
                                             "gemv_q1_g128_b1_mma"};
  EXPECT_EQ(entries, expected);
}

TEST_F(CudaDeviceTest, OutputsAreTheRowsThatWereAskedFor) {
  const Loaded l = load().value();
  fake_.kernel = [&](const FakeDriver::Launched& launch) {
    if (launch.entry != "gemv_q1_g128_b1_mma") return;
    TernGemvParams p{};
    std::memcpy(&p, launch.params.data(), sizeof p);
    auto* y = reinterpret_cast<float*>(launch.arena + p.y);
    for (std::uint32_t n = 0; n < p.outputs; ++n) y[n] = static_cast<float>(n) + 0.5F;
  };
  const auto s = l.device->submit(*l.executable, block({1, 2}), {}).value();
  ASSERT_TRUE(l.device->wait(*l.executable, s, backend::kNoDeadline).ok());
  const backend::OutputRows out = l.device->output(*l.executable, s, 0).value();
  ASSERT_EQ(out.rows, 1);
  ASSERT_EQ(out.width, kVocabulary);
  EXPECT_EQ(out.row(0)[99], 99.5F);
  EXPECT_EQ(l.device->output(*l.executable, s, 1).error().code(), ErrorCode::kInternal);
}

TEST_F(CudaDeviceTest, C52_AFailedCaptureFallsBackToPlainLaunchesWithOneWarning) {
  fake_.fail("cuStreamEndCapture", 1, 901);
  const Loaded l = load().value();
  const auto& executable = static_cast<const CudaExecutable&>(*l.executable);
  EXPECT_EQ(executable.graph_nodes(), 0U);
  ASSERT_EQ(executable.warnings().size(), 1U);
  EXPECT_NE(executable.warnings()[0].find("cuStreamEndCapture"), std::string::npos);
  const std::size_t before = fake_.launched().size();
  ASSERT_TRUE(step(l, block({1})).ok());
  EXPECT_EQ(fake_.launched().size(), before + 7);
  EXPECT_EQ(fake_.calls("cuGraphLaunch"), 0);
}

TEST_F(CudaDeviceTest, C13_AStickyErrorLosesTheDeviceAndANewOneWorks) {
  const Loaded l = load().value();
  const Loaded other = load().value();
  fake_.fail("cuGraphLaunch", 1, 700);
  const Result<void> first = step(l, block({1}));
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.error().code(), ErrorCode::kDevice);
  const int launches = fake_.calls("cuGraphLaunch");
  const Result<void> second = step(l, block({1}));
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message().find("was lost"), std::string::npos);
  EXPECT_NE(second.error().message().find("cuGraphLaunch"), std::string::npos);
  EXPECT_EQ(fake_.calls("cuGraphLaunch"), launches) << "a lost device is not asked again";
  EXPECT_FALSE(l.device->output(*l.executable, {1}, 0).ok());
  EXPECT_TRUE(step(other, block({1})).ok()) << "other devices go on";
  const Loaded again = load().value();
  EXPECT_TRUE(step(again, block({1})).ok());
}

TEST_F(CudaDeviceTest, AnErrorThatTheWaitFindsEndsTheStepWithoutData) {
  const Loaded l = load().value();
  const auto s = l.device->submit(*l.executable, block({1}), {}).value();
  fake_.fail("cuEventQuery", 1, 719);
  const Result<void> result = l.device->wait(*l.executable, s, backend::kNoDeadline);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message().find("cuEventQuery"), std::string::npos);
  EXPECT_FALSE(l.device->output(*l.executable, s, 0).ok());
}

TEST_F(CudaDeviceTest, C14_AWaitIsBounded) {
  DeviceOptions options;
  options.longest_wait = std::chrono::milliseconds(20);
  const Loaded l = load(options).value();
  fake_.never_passes = true;
  const auto s = l.device->submit(*l.executable, block({1}), {}).value();
  const Result<void> early = l.device->wait(
      *l.executable, s, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code(), ErrorCode::kDeadline) << "the step goes on";
  const Result<void> late = l.device->wait(*l.executable, s, backend::kNoDeadline);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), ErrorCode::kDevice);
  EXPECT_NE(late.error().message().find("has not ended"), std::string::npos);
  fake_.never_passes = false;
  EXPECT_TRUE(l.device->wait(*l.executable, s, backend::kNoDeadline).ok());
}

TEST_F(CudaDeviceTest, SubmitRefusesWhatTheBlockMayNotHold) {
  const Loaded l = load().value();
  const auto code = [&](const program::BatchBlock& b) {
    const auto result = l.device->submit(*l.executable, b, {});
    return result.ok() ? ErrorCode::kUsage : result.error().code();
  };
  EXPECT_EQ(code(block({1, 2, 3, 4, 5})), ErrorCode::kInvalidArgument) << "more rows than planned";
  EXPECT_EQ(code(block({100})), ErrorCode::kInvalidArgument) << "an id beyond the vocabulary";
  EXPECT_EQ(code(block({-1})), ErrorCode::kInvalidArgument);
  program::BatchBlock b = block({1});
  b.output_rows = {1};
  EXPECT_EQ(code(b), ErrorCode::kInvalidArgument);
  b = block({1, 2});
  b.position[1] = 0;
  EXPECT_EQ(code(b), ErrorCode::kInvalidArgument);
  b = block({1});
  b.pages = {0};
  EXPECT_EQ(code(b), ErrorCode::kInvalidArgument) << "there are no pages";
  EXPECT_EQ(fake_.calls("cuGraphLaunch"), 0);
  const CancelToken cancel = CancelToken::make();
  cancel.request();
  EXPECT_EQ(l.device->submit(*l.executable, block({1}), cancel).error().code(),
            ErrorCode::kCancelled);
  const auto s = l.device->submit(*l.executable, block({1}), {}).value();
  EXPECT_EQ(code(block({1})), ErrorCode::kInternal) << "one step of an executable at a time";
  EXPECT_TRUE(l.device->wait(*l.executable, s, backend::kNoDeadline).ok());
  EXPECT_EQ(l.device->wait(*l.executable, s, backend::kNoDeadline).error().code(),
            ErrorCode::kInternal);
}

TEST_F(CudaDeviceTest, OutOfMemoryNamesNeedAndHave) {
  fake_.memory_bytes = 4096;
  const Result<Loaded> l = load();
  ASSERT_FALSE(l.ok());
  EXPECT_EQ(l.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(l.error().message().find("the weights: "), std::string::npos) << l.error().message();
  EXPECT_NE(l.error().message().find("4096 of 4096 bytes are free"), std::string::npos);
}

TEST_F(CudaDeviceTest, A9_AKernelOfAnotherParameterLayoutIsRefusedByName) {
  fake_.params_mark = {88, 12345};
  const Result<Loaded> l = load();
  ASSERT_FALSE(l.ok());
  EXPECT_EQ(l.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(l.error().message().find("embed_q1_g128"), std::string::npos);
  EXPECT_NE(l.error().message().find("88 bytes"), std::string::npos);
}

TEST_F(CudaDeviceTest, A9_AKernelThatCannotRunItsGeometryIsRefusedWhenItIsLoaded) {
  fake_.threads_of_functions = 64;
  const Result<Loaded> l = load();
  ASSERT_FALSE(l.ok());
  EXPECT_NE(l.error().message().find("64 threads"), std::string::npos);
}

TEST_F(CudaDeviceTest, AnArchitectureWithoutCodeIsNamedWithWhatThereIs) {
  fake_.attributes[kCapabilityMajor] = 12;
  const Result<Loaded> l = load();
  ASSERT_FALSE(l.ok());
  EXPECT_EQ(l.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(l.error().message().find("sm_120"), std::string::npos);
  EXPECT_NE(l.error().message().find("sm_90"), std::string::npos);
}

TEST_F(CudaDeviceTest, EverythingIsGivenBackWhateverCallFails) {
  const char* symbols[] = {
      "cuMemAlloc",         "cuMemHostAlloc",       "cuStreamCreate",      "cuEventCreate",
      "cuMemcpyHtoDAsync",  "cuModuleLoadData",     "cuModuleGetFunction", "cuModuleGetGlobal",
      "cuFuncGetAttribute", "cuStreamBeginCapture", "cuGraphInstantiate",  "cuGraphGetNodes",
      "cuMemsetD8Async",    "cuStreamSynchronize",  "cuLaunchKernelEx",    "cuEventRecord"};
  for (const char* symbol : symbols)
    for (int nth = 1; nth <= 4; ++nth) {
      fake_.fail(symbol, nth, 1);
      {
        const Result<Loaded> l = load();
        if (l.ok()) (void)step(*l, block({1}));
      }
      ASSERT_EQ(fake_.live_objects(), 0U) << symbol << " " << nth;
      ASSERT_EQ(fake_.allocated_bytes(), 0U) << symbol << " " << nth;
      ASSERT_EQ(fake_.retained_contexts(), 0) << symbol << " " << nth;
    }
}

TEST_F(CudaDeviceTest, EarlyLaunchesCarryTheAttributeOnEveryEdgeButTheFirst) {
  DeviceOptions options;
  options.executable = {false, true};
  const Loaded l = load(options).value();
  const std::size_t before = fake_.launched().size();
  ASSERT_TRUE(step(l, block({1})).ok());
  const auto launched = fake_.launched();
  ASSERT_EQ(launched.size(), before + 7);
  for (std::size_t i = before; i < launched.size(); ++i)
    EXPECT_EQ(launched[i].is_early, i > before) << launched[i].entry;
}

TEST_F(CudaDeviceTest, DiagnosticsLookAtEveryStep) {
  const Loaded l = load().value();
  const auto seconds = l.device->time_steps(*l.executable, block({1}), 3).value();
  ASSERT_EQ(seconds.size(), program_.ops.size());
  for (const double s : seconds) EXPECT_DOUBLE_EQ(s, 1e-3);
  std::uint32_t written = 0x7FC00000U;  // NaN
  fake_.kernel = [&](const FakeDriver::Launched& launch) {
    if (launch.entry != "rms_norm") return;
    TernRmsNormParams p{};
    std::memcpy(&p, launch.params.data(), sizeof p);
    *reinterpret_cast<std::uint32_t*>(launch.arena + p.y) = written;
  };
  EXPECT_EQ(l.device->first_non_finite(*l.executable, block({1})).value(), "rms_norm in layer 0");
  written = 0;
  EXPECT_EQ(l.device->first_non_finite(*l.executable, block({1})).value(), "");
}

TEST_F(CudaDeviceTest, WithoutADriverThereAreNoDevicesAndOneSentence) {
  const CudaBackend backend;
  if (!backend.devices().empty()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_FALSE(backend.device_infos().ok());
}

}  // namespace
}  // namespace tern::cuda
