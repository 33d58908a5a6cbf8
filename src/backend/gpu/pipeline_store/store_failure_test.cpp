// What goes wrong: damaged entries, refusing drivers, failing devices, miscompiled kernels.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "backend/gpu/pipeline_store/fakes_test.h"

namespace tern::gpu {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> entries_of(const Machine& machine, PayloadKind kind) {
  std::vector<std::string> found;
  for (const std::string& name : cache::files_below(machine.folder->path())) {
    const std::string path = machine.folder->path() + "/" + name;
    if (!name.ends_with(".tkc")) continue;
    const std::string bytes = cache::read_file(path);
    if (static_cast<PayloadKind>(bytes[12]) == kind) found.push_back(path);
  }
  return found;
}

// Every start with a damaged entry works, uses the right kernel and replaces the entry.
TEST(PipelineStore, Ps03_EveryStartRepairsADamagedEntry) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  const std::vector<std::string> cubins = entries_of(machine, PayloadKind::kCubin);
  ASSERT_EQ(cubins.size(), 1u);
  const std::string good = cache::read_file(cubins[0]);
  int damaged = 0;
  for (std::size_t i = 0; i < 2 * good.size(); i += 3) {
    std::string bad = good;
    if (i < good.size()) {
      bad[i] = static_cast<char>(bad[i] ^ 0x10);
    } else {
      bad.resize(i - good.size());
    }
    cache::write_file(cubins[0], bad);
    ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline) << i;
    ASSERT_EQ(cache::read_file(cubins[0]), good) << i;
    ++damaged;
  }
  EXPECT_EQ(machine.compiles(), damaged + 1);
}

// Foreign bytes under the right name, with a right checksum: the driver refuses, it is removed and
// rebuilt once.
TEST(PipelineStore, Ps22_WhatTheDriverRefusesIsRebuiltOnce) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  const std::string path = entries_of(machine, PayloadKind::kCubin).at(0);
  const std::string bytes = cache::read_file(path);
  const auto view = cache::parse_entry(bytes_of(bytes)).value();
  for (const char* payload : {"CODE sm_80\nfn k 32 7 1024 64\n", "", "CODE sm_90a\n"}) {
    const auto planted = cache::encode_entry(PayloadKind::kCubin, view.key_text,
                                             view.entry_point_names(), bytes_of(payload))
                             .value();
    cache::write_file(path, text_of(planted));
    const int before = machine.compiles();
    EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline);
    EXPECT_EQ(machine.compiles(), before + 1);
    EXPECT_EQ(machine.expect_right(kernel), Tier::kDisk);
  }
  // A driver that refuses the rebuilt one too: each tier is tried once, then the error names all.
  machine.loader->refuses = "origin";
  const int before = machine.compiles();
  const auto store = machine.store();
  const Result<PipelinePtr> pipeline = store->resolve(kernel);
  ASSERT_FALSE(pipeline.ok());
  EXPECT_EQ(machine.compiles(), before + 2);
  for (const char* part : {"disk: invalid", "offline: invalid", "runtime: invalid"}) {
    EXPECT_NE(pipeline.error().message().find(part), std::string::npos) << part;
  }
  EXPECT_TRUE(entries_of(machine, PayloadKind::kCubin).empty());
  EXPECT_FALSE(store->resolve(kernel).ok());
  EXPECT_EQ(machine.compiles(), before + 2);
}

TEST(PipelineStore, AnEntryThatCannotBeRemovedDoesNotLoop) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  const std::string path = entries_of(machine, PayloadKind::kCubin).at(0);
  const std::string bytes = cache::read_file(path);
  const auto view = cache::parse_entry(bytes_of(bytes)).value();
  cache::write_file(path, text_of(cache::encode_entry(PayloadKind::kCubin, view.key_text, {},
                                                      bytes_of("CODE sm_80"))
                                      .value()));
  auto files = std::make_shared<FaultyFileSystem>();
  files->faults = {{cache::Call::kRemove, 0, -EROFS, false},
                   {cache::Call::kRename, 0, -EROFS, false}};
  machine.system.files = files;
  EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline);
  EXPECT_EQ(machine.compiles(), 2);
}

// A compiler makes wrong code: a kernel whose results are half the size is never used.
TEST(PipelineStore, Ps37_AHalvedKernelIsRejected) {
  Machine machine;
  machine.offline->gain = 0.5;
  const KernelDescription kernel = fake_kernel("k");
  EXPECT_EQ(machine.expect_right(kernel), Tier::kRuntime);
  ASSERT_FALSE(machine.warnings->empty());
  const std::string& warning = machine.warnings->front();
  for (const char* part : {"k/plain", "Fake 1", "offline 13.0.88", "error 0.5"}) {
    EXPECT_NE(warning.find(part), std::string::npos) << part;
  }
  machine.runtime->gain = 0.5;
  const KernelDescription other = fake_kernel("other");
  const Result<PipelinePtr> refused = machine.store()->resolve(other);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kNumeric);
  // Nothing of it is left on disk: later, with a mended compiler, it is built.
  machine.offline->gain = 1;
  EXPECT_EQ(machine.expect_right(other), Tier::kOffline);
}

// Without the self-test the halved kernel would be used: the test above is not vacuous.
TEST(PipelineStore, SelfTestModes) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  const auto state_of = [&](SelfTestMode mode) {
    machine.options.switches.self_test = mode;
    return machine.store()->resolve(kernel).value()->report.self_test;
  };
  machine.offline->gain = 0.5;
  EXPECT_EQ(state_of(SelfTestMode::kOff), SelfTestState::kOff);
  EXPECT_EQ(machine.store()->resolve(kernel).value()->report.tier, Tier::kDisk);
  machine.offline->gain = 1;
  EXPECT_EQ(state_of(SelfTestMode::kOnce), SelfTestState::kPassed);  // the bad entry was replaced
  EXPECT_EQ(state_of(SelfTestMode::kOnce), SelfTestState::kRecorded);
  EXPECT_EQ(state_of(SelfTestMode::kAlways), SelfTestState::kPassed);
  // Another driver or another test: the record does not count.
  machine.device.driver = "580.2";
  EXPECT_EQ(state_of(SelfTestMode::kOnce), SelfTestState::kPassed);
  machine.device.driver = "580.1 build 3";
  machine.device.name = "Fake 1 SXM";
  EXPECT_EQ(state_of(SelfTestMode::kOnce), SelfTestState::kPassed);
  KernelDescription newer = kernel;
  newer.self_test.version = "2";
  EXPECT_EQ(machine.store()->resolve(newer).value()->report.self_test, SelfTestState::kPassed);
  EXPECT_EQ(machine.store()->resolve(newer).value()->report.self_test, SelfTestState::kRecorded);
}

TEST(PipelineStore, ARejectedVariantGivesWayToTheNextAndThenToTheNextTier) {
  Machine machine;
  KernelDescription fast = fake_kernel("k", "gain 0.5\n");
  fast.code.variant = "fast";
  KernelDescription slow = fake_kernel("k");
  slow.code.variant = "slow";
  {
    const std::vector<KernelDescription> variants = {fast, slow};
    const PipelinePtr pipeline = machine.store()->resolve_one_of(variants).value();
    EXPECT_EQ(pipeline->report.variant, "slow");
    EXPECT_EQ(pipeline->report.tier, Tier::kOffline);
  }
  // Both are rejected from the first compiler; then the first variant's next tier has its turn.
  machine.offline->gain = 0.5;
  const KernelDescription good = fake_kernel("g");
  KernelDescription bad = fake_kernel("g", "gain 0.25\n");
  bad.code.variant = "bad";
  const std::vector<KernelDescription> variants = {bad, good};
  const PipelinePtr pipeline = machine.store()->resolve_one_of(variants).value();
  EXPECT_EQ(pipeline->report.variant, "plain");
  EXPECT_EQ(pipeline->report.tier, Tier::kRuntime);
  const std::vector<KernelDescription> none = {bad};
  EXPECT_FALSE(machine.store()->resolve_one_of(none).ok());
}

TEST(PipelineStore, KnownBadPairsAreData) {
  Machine machine;
  const std::vector<KnownBad> bad = {{"sm_90a", "13.0.88", "k", "", "wrong sums"}};
  machine.options.known_bad = bad;
  EXPECT_EQ(machine.expect_right(fake_kernel("k")), Tier::kRuntime);
  EXPECT_EQ(machine.expect_right(fake_kernel("other")), Tier::kOffline);
  EXPECT_NE(machine.warnings->front().find("wrong sums"), std::string::npos);
}

// A device that fails is asked once and told once, whoever asks again.
TEST(PipelineStore, Ps42_AFailingDeviceIsTriedOnce) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  const std::vector<std::string> before = cache::files_below(machine.folder->path());
  machine.loader->fails_with = "no memory on the device";
  machine.loader->loads = 0;
  const auto store = machine.store();
  for (int layer = 0; layer < 36; ++layer) {
    const Result<PipelinePtr> pipeline = store->resolve(kernel);
    ASSERT_FALSE(pipeline.ok());
    EXPECT_EQ(pipeline.error().code(), ErrorCode::kDevice);
    EXPECT_NE(pipeline.error().message().find("no memory on the device"), std::string::npos);
  }
  EXPECT_EQ(machine.loader->loads, 1);
  EXPECT_EQ(machine.warnings->size(), 1u);
  EXPECT_EQ(cache::files_below(machine.folder->path()), before);  // nobody's code is to blame
}

TEST(PipelineStore, AMistakeInTheSourcesIsCompiledOnceAndToldOnce) {
  Machine machine;
  machine.runtime->is_absent = true;
  const auto store = machine.store();
  const std::vector<KernelDescription> kernels = {fake_kernel("bad", "mistake\n"),
                                                  fake_kernel("good")};
  for (int i = 0; i < 3; ++i) {
    const auto pipelines = store->resolve(kernels);
    ASSERT_FALSE(pipelines[0].ok());
    EXPECT_TRUE(pipelines[1].ok());
    EXPECT_NE(pipelines[0].error().message().find("bad/plain"), std::string::npos);
  }
  EXPECT_EQ(machine.offline->compiles, 2);
  // The compiler's own words once, the verdict once.
  ASSERT_EQ(machine.warnings->size(), 2u);
  EXPECT_NE(machine.warnings->front().find("bad.cu(1): error: mistake"), std::string::npos);
}

TEST(PipelineStore, FailingSurroundingsOfACompilerTakeTheNextTier) {
  Machine machine;
  machine.offline->breaks = "k";
  EXPECT_EQ(machine.expect_right(fake_kernel("k")), Tier::kRuntime);
  EXPECT_EQ(machine.expect_right(fake_kernel("other")), Tier::kOffline);
}

// The checks after loading: entry points, parameter blocks, launch limits.
TEST(PipelineStore, LoadedCodeIsCheckedBeforeItIsHandedOut) {
  const auto problem_of = [](const KernelDescription& kernel, const auto& change) {
    Machine machine;
    change(machine);
    const Result<PipelinePtr> pipeline = machine.store()->resolve(kernel);
    return pipeline.ok() ? std::string("none") : pipeline.error().message();
  };
  const auto nothing = [](Machine&) {};
  KernelDescription kernel = fake_kernel("k");
  EXPECT_EQ(problem_of(kernel, nothing), "none");
  kernel.entry_points[0].params.layout = 8;
  EXPECT_NE(problem_of(kernel, nothing).find("layout"), std::string::npos);
  kernel = fake_kernel("k");
  kernel.entry_points[0].params.bytes = 40;
  EXPECT_NE(problem_of(kernel, nothing).find("the host's 40 bytes"), std::string::npos);
  kernel = fake_kernel("k");
  kernel.entry_points.push_back({"second", {}, {}});
  EXPECT_NE(problem_of(kernel, nothing).find("second is missing"), std::string::npos);
  kernel = fake_kernel("k");
  kernel.entry_points[0].launch.threads = 1025;
  EXPECT_NE(problem_of(kernel, nothing).find("1025 threads"), std::string::npos);
  kernel = fake_kernel("k");
  kernel.entry_points[0].launch.dynamic_shared = 48 * 1024;  // and 64 static bytes
  EXPECT_NE(problem_of(kernel, nothing).find("49216 bytes of shared memory"), std::string::npos);
  kernel = fake_kernel("k");
  kernel.entry_points[0].launch.simd_width = 64;
  EXPECT_NE(problem_of(kernel, nothing).find("SIMD groups of 64"), std::string::npos);
  kernel = fake_kernel("k");
  kernel.code.sources[0].text = "fn k 0 0 128 64\n";  // exports nothing, took many registers
  EXPECT_NE(problem_of(kernel, nothing).find("does not export k_params_mark"), std::string::npos);
  kernel.entry_points[0].params = {};
  EXPECT_NE(problem_of(kernel, nothing).find("128 are possible"), std::string::npos);
  EXPECT_NE(problem_of(fake_kernel("k"),
                       [](Machine& machine) {
                         machine.offline->forgets = "k";
                         machine.runtime->forgets = "k";
                       })
                .find("k is missing"),
            std::string::npos);
}

// Own artefacts: with the driver's cache off, the second start compiles nothing.
TEST(PipelineStore, Ps31_TheSecondStartCompilesNothing) {
  Machine machine;
  std::vector<KernelDescription> kernels;
  for (int i = 0; i < 6; ++i) kernels.push_back(fake_kernel("k" + std::to_string(i)));
  for (const auto& pipeline : machine.store()->resolve(kernels)) ASSERT_TRUE(pipeline.ok());
  EXPECT_EQ(machine.compiles(), 6);
  for (const auto& pipeline : machine.store()->resolve(kernels)) {
    EXPECT_EQ(pipeline.value()->report.tier, Tier::kDisk);
  }
  EXPECT_EQ(machine.compiles(), 6);
}

// The fakes have no cache of their own, so what hits is ours: without our folder, all is compiled
// again.
TEST(PipelineStore, Ps35_NoOtherCacheHelps) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  fs::remove_all(machine.folder->path() + "/tern");
  EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline);
  EXPECT_EQ(machine.compiles(), 2);
  machine.options.switches.cache = cache::Mode::kOff;
  EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline);
  EXPECT_EQ(machine.compiles(), 3);
}

TEST(PipelineStore, ReadOnlyUsesButNeverChangesTheDisk) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  const std::vector<std::string> before = cache::files_below(machine.folder->path());
  machine.options.switches.cache = cache::Mode::kReadOnly;
  EXPECT_EQ(machine.expect_right(kernel), Tier::kDisk);
  EXPECT_EQ(machine.expect_right(fake_kernel("new")), Tier::kOffline);
  EXPECT_EQ(cache::files_below(machine.folder->path()), before);
}

// Two processes start at once: one compiles, the other waits and finds the code.
TEST(PipelineStore, TwoProcessesCompileOnce) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  machine.offline->delay_ms = 300;
  const auto run = [&] {
    return cache::start_child([&] {
      const Result<PipelinePtr> pipeline = machine.store()->resolve(kernel);
      return pipeline.ok() ? machine.offline->compiles.load() : 100;
    });
  };
  const pid_t first = run();
  const pid_t second = run();
  EXPECT_EQ(cache::wait_for_child(first) + cache::wait_for_child(second), 1);
}

// A process is killed in the middle of a compile: the next start is right, at once, and clean.
TEST(PipelineStore, Ps24_KilledInTheMiddleOfACompile) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  machine.offline->delay_ms = 20000;
  const pid_t child = cache::start_child([&] { return machine.store()->resolve(kernel).ok(); });
  std::string scratch;
  for (int i = 0; i < 1000 && scratch.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto strays = cache::strays_below(machine.folder->path());
    if (!strays.empty()) scratch = strays.front();
  }
  ASSERT_FALSE(scratch.empty());
  ::kill(child, SIGKILL);
  EXPECT_EQ(cache::wait_for_child(child), -SIGKILL);
  machine.offline->delay_ms = 0;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_TRUE(cache::strays_below(machine.folder->path()).empty());
}

// Random faults of the file system under the whole store: always the right kernel.
TEST(PipelineStore, NoFaultOfTheDiskGivesAWrongKernelOrStopsAStart) {
  Machine machine;
  machine.runtime->asks_for_scratch = false;  // as NVRTC: needs no disk at all
  std::mt19937 random(5);
  std::vector<KernelDescription> kernels;
  for (int i = 0; i < 4; ++i) kernels.push_back(fake_kernel("k" + std::to_string(i)));
  for (int round = 0; round < 300; ++round) {
    auto files = std::make_shared<FaultyFileSystem>();
    files->faults = {{static_cast<cache::Call>(random() % 18), static_cast<int>(random() % 8),
                      random() % 2 == 0 ? -EIO : -ENOSPC, false}};
    files->most_read = random() % 2 == 0 ? 11 : SIZE_MAX;
    machine.system.files = files;
    machine.offline->asks_for_scratch = random() % 2 == 0;
    const KernelDescription& kernel = kernels[random() % kernels.size()];
    const Result<PipelinePtr> pipeline = machine.store()->resolve(kernel);
    ASSERT_TRUE(pipeline.ok()) << round << ": " << pipeline.error().message();
    machine.expect_origin(kernel, **pipeline);
    if (round % 10 != 0) continue;
    for (const std::string& path : entries_of(machine, PayloadKind::kCubin)) {
      std::string bytes = cache::read_file(path);
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
      cache::write_file(path, bytes);
    }
  }
}

}  // namespace
}  // namespace tern::gpu
