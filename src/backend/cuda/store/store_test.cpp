// Loader, linker and self-tests of the CUDA store on a fake driver, and the table of sources.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "backend/cuda/embed/embedded.h"
#include "backend/cuda/fake/fake_driver_test.h"
#include "backend/cuda/store/cuda_loader.h"
#include "backend/cuda/store/cuda_store.h"
#include "backend/cuda/store/self_tests.h"

namespace tern::cuda {
namespace {

TEST(KernelSources, EverySourceIsDescribedAndEveryKernelBelongsToOne) {
  std::set<std::string> entries;
  for (const KernelSource& source : kKernelSources) {
    const auto kernel = describe_kernel(source);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message();
    EXPECT_GE(kernel->code.sources.size(), 3U);
    EXPECT_EQ(kernel->code.sources[0].name, source.file);
    EXPECT_FALSE(kernel->entry_points.empty()) << source.stem;
    for (const gpu::EntryPoint& entry : kernel->entry_points) entries.insert(entry.name);
  }
  EXPECT_EQ(entries.size(), kKernels.size());
}

TEST(KernelSources, EmbeddedCodeWasMadeFromTheSourcesThatAreEmbedded) {
  if (embedded_cubins().empty()) GTEST_SKIP() << "this build has no CUDA kernels";
  const EmbeddedImages images;
  int compared = 0;
  for (const KernelSource& source : kKernelSources)
    for (const gpu::EmbeddedKernel& kernel : images.table().kernels) {
      if (kernel.stem != source.stem) continue;
      EXPECT_EQ(kernel.source_hash, gpu::source_hash(describe_kernel(source).value().code.sources));
      EXPECT_EQ(kernel.variant, source.variant);
      ++compared;
    }
  EXPECT_GE(compared, static_cast<int>(kKernelSources.size()));
}

TEST(CudaTargets, CodeOfOlderDevicesOfAMajorVersionIsAccepted) {
  EXPECT_EQ(accepted_targets("sm_90"), (std::vector<std::string>{"sm_90a", "sm_90"}));
  EXPECT_EQ(accepted_targets("sm_89").front(), "sm_89a");
  EXPECT_EQ(accepted_targets("sm_89").back(), "sm_80");
}

class CudaLoaderTest : public testing::Test {
 protected:
  CudaLoaderTest() : context_(Context::open(fake_.api(), 0).value()) {
    loader_ = make_cuda_loader(context_);
  }
  Result<std::shared_ptr<gpu::Module>> load() {
    const std::array<std::byte, 4> bytes{};
    return loader_->load(gpu::PayloadKind::kCubin, bytes, "test");
  }
  FakeDriver fake_;
  std::shared_ptr<Context> context_;
  std::shared_ptr<gpu::Loader> loader_;
};

TEST_F(CudaLoaderTest, EntriesCarryTheFactsThatTheStoreChecks) {
  const auto module = load().value();
  gpu::EntryPoint entry;
  entry.name = "rms_norm";
  const gpu::LoadedEntry found = loader_->find(*module, entry, {}).value();
  EXPECT_NE(found.handle, nullptr);
  EXPECT_EQ(found.most_threads, 1024U);
  ASSERT_TRUE(found.params.has_value());
  EXPECT_EQ(found.params->bytes, sizeof(TernRmsNormParams));
  EXPECT_EQ(found.params->layout, TERN_RMS_NORM_LAYOUT);
}

TEST_F(CudaLoaderTest, Ps33_CodeThatTheDriverRefusesIsTheCodesFaultAndNamesTheDriver) {
  fake_.fail("cuModuleLoadData", 1, 200);
  const auto result = load();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(result.error().message().find("CUDA 13.0"), std::string::npos);
  EXPECT_FALSE(context_->is_lost());
  EXPECT_TRUE(load().ok());
}

TEST_F(CudaLoaderTest, ADeviceThatIsLostIsTheDevicesFault) {
  fake_.fail("cuModuleLoadData", 1, 719);
  EXPECT_EQ(load().error().code(), ErrorCode::kDevice);
  EXPECT_TRUE(context_->is_lost());
}

TEST_F(CudaLoaderTest, AMissingEntryPointIsNotFound) {
  const auto module = load().value();
  fake_.fail("cuModuleGetFunction", 1, kNotFoundStatus);
  gpu::EntryPoint entry;
  entry.name = "rms_norm";
  EXPECT_EQ(loader_->find(*module, entry, {}).error().code(), ErrorCode::kNotFound);
}

TEST_F(CudaLoaderTest, ModulesGoWithTheirLastReference) {
  const std::size_t before = fake_.live_objects();
  auto module = load().value();
  EXPECT_EQ(fake_.live_objects(), before + 1);
  module.reset();
  EXPECT_EQ(fake_.live_objects(), before);
}

TEST_F(CudaLoaderTest, PtxIsLinkedAndARefusalNamesTheDriver) {
  const auto linker = make_ptx_linker(context_, "13.0");
  const std::array<std::byte, 3> ptx{};
  const auto linked = linker->link(ptx, "sm_90").value();
  EXPECT_EQ(std::memcmp(linked.data(), "linked cubin", 12), 0);
  fake_.fail("cuLinkAddData", 1, 222);
  const auto refused = linker->link(ptx, "sm_90");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("newer than 13.0"), std::string::npos);
  EXPECT_EQ(fake_.calls("cuLinkDestroy"), 2);
}

TEST_F(CudaLoaderTest, Ps37_AKernelThatDoesNothingFailsItsSelfTest) {
  if (embedded_cubins().empty()) GTEST_SKIP() << "this build has no CUDA kernels";
  StoreSettings settings;
  settings.options.switches.tiers = {gpu::Tier::kEmbedded};
  settings.options.tern = "test";
  CudaStore store(context_, "Fake H200", "sm_90", 132, settings);
  int refused = 0;
  for (const auto& pipeline : store.resolve_all()) {
    if (pipeline.ok()) continue;
    EXPECT_EQ(pipeline.error().code(), ErrorCode::kNumeric) << pipeline.error().message();
    ++refused;
  }
  EXPECT_EQ(refused, 6) << "all that have a test";
}

TEST_F(CudaLoaderTest, ARightKernelPassesItsSelfTestAndAHalvedOneDoesNot) {
  if (embedded_cubins().empty()) GTEST_SKIP() << "this build has no CUDA kernels";
  float factor = 1;
  fake_.kernel = [&](const FakeDriver::Launched& launch) {
    if (launch.entry != "gather_rows") return;
    TernGatherParams p{};
    std::memcpy(&p, launch.params.data(), sizeof p);
    const auto* rows = reinterpret_cast<const std::uint32_t*>(launch.block + p.rows);
    for (unsigned r = 0; r < launch.config.grid_y; ++r)
      for (unsigned k = 0; k < p.width; ++k)
        reinterpret_cast<float*>(launch.arena + p.y)[r * p.y_row_stride + k] =
            factor *
            reinterpret_cast<const float*>(launch.arena + p.x)[rows[r] * p.x_row_stride + k];
  };
  StoreSettings settings;
  settings.options.switches.tiers = {gpu::Tier::kEmbedded};
  {
    CudaStore store(context_, "Fake H200", "sm_90", 132, settings);
    const auto pipeline = store.resolve("gather_rows");
    ASSERT_TRUE(pipeline.ok()) << pipeline.error().message();
    EXPECT_EQ((*pipeline)->report.self_test, gpu::SelfTestState::kPassed);
  }
  factor = 0.5F;
  CudaStore store(context_, "Fake H200", "sm_90", 132, settings);
  EXPECT_EQ(store.resolve("gather_rows").error().code(), ErrorCode::kNumeric);
}

}  // namespace
}  // namespace tern::cuda
