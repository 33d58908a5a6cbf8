#include "backend/cuda/compile/nvrtc_compiler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "backend/cuda/compile/cubin.h"
#include "backend/cuda/compile/fakes_test.h"
#include "backend/gpu/pipeline_store/fakes_test.h"

namespace tern::cuda {
namespace {

namespace fs = std::filesystem;

Result<NvrtcLibrary> open_real() {
  NvrtcSearch search = read_nvrtc_search();
  if (!search.cuda_home) search.cuda_home = "/usr/local/cuda";
  return load_nvrtc(search);
}

std::shared_ptr<gpu::Compiler> real_nvrtc() { return make_nvrtc_compiler(open_real); }

#define TERN_NEEDS_NVRTC(compiler) \
  if (!(compiler)->identity().ok()) GTEST_SKIP() << (compiler)->identity().error().message()

TEST(NvrtcCompiler, CompilesARealKernelToACubin) {
  const auto nvrtc = real_nvrtc();
  TERN_NEEDS_NVRTC(nvrtc);
  for (const char* target : {"sm_90", "sm_90a", "sm_75"}) {
    const Job job(small_kernel(), target);
    const gpu::CompileResult result = nvrtc->compile(job.get());
    ASSERT_TRUE(result.artefact) << result.error << "\n" << result.diagnostics;
    EXPECT_EQ(result.artefact->entry_points, (std::vector<std::string>{"copy", "scale"}));
  }
  // A version and a build, and no place.
  const std::string version = nvrtc->identity()->version;
  EXPECT_EQ(version.find("NVRTC "), 0u);
  EXPECT_TRUE(version.find(", build ") != std::string::npos ||
              version.find(", sha256 ") != std::string::npos);
  EXPECT_EQ(version.find('/'), std::string::npos);
  EXPECT_TRUE(fs::path(nvrtc->identity()->location).is_absolute());
}

TEST(NvrtcCompiler, AMistakeIsAPropertyOfTheSources) {
  const auto nvrtc = real_nvrtc();
  TERN_NEEDS_NVRTC(nvrtc);
  Job job;
  job.code.sources[1].text += "__device__ int broken() { return nothing; }\n";
  const gpu::CompileResult result = nvrtc->compile(job.get());
  EXPECT_FALSE(result.artefact);
  EXPECT_TRUE(result.is_input_error);
  EXPECT_NE(result.diagnostics.find("math/factor.h("), std::string::npos) << result.diagnostics;
  EXPECT_NE(result.diagnostics.find("nothing"), std::string::npos);
}

TEST(NvrtcCompiler, HeadersComeFromTheSourcesAlone) {
  const auto nvrtc = real_nvrtc();
  TERN_NEEDS_NVRTC(nvrtc);
  const fs::path before = fs::current_path();
  const TemporaryFolder folder;
  fs::create_directory(folder.path() + "/math");
  cache::write_file(folder.path() + "/math/factor.h", "#error this is the wrong one\n");
  fs::current_path(folder.path());
  const Job job;
  const gpu::CompileResult result = nvrtc->compile(job.get());
  fs::current_path(before);
  EXPECT_TRUE(result.artefact) << result.diagnostics;
}

// The whole store over the real compilers: cold through NVRTC, side by side; then from disk.
TEST(NvrtcCompiler, TheStoreKeepsWhatNvrtcMade) {
  const auto nvrtc = real_nvrtc();
  TERN_NEEDS_NVRTC(nvrtc);
  // A driver that knows cubins by their symbols.
  struct CubinLoader final : gpu::Loader {
    struct Cubin final : gpu::Module {
      CubinFacts facts;
    };
    [[nodiscard]] Result<std::shared_ptr<gpu::Module>> load(gpu::PayloadKind /*kind*/,
                                                            std::span<const std::byte> bytes,
                                                            const std::string& /*name*/) override {
      auto module = std::make_shared<Cubin>();
      TERN_ASSIGN(module->facts, read_cubin(bytes));
      return std::shared_ptr<gpu::Module>(module);
    }
    [[nodiscard]] Result<gpu::LoadedEntry> find(
        gpu::Module& module, const gpu::EntryPoint& entry,
        const std::vector<gpu::Constant>& /*constants*/) override {
      const std::vector<std::string>& names = static_cast<Cubin&>(module).facts.entry_points;
      if (std::find(names.begin(), names.end(), entry.name) == names.end()) {
        return fail(ErrorCode::kNotFound, "{} is missing", entry.name);
      }
      gpu::LoadedEntry found;
      found.name = entry.name;
      found.most_threads = 1024;
      return found;
    }
  };
  const TemporaryFolder folder;
  const auto start = [&](std::span<const gpu::KernelDescription> kernels) {
    gpu::StoreOptions options;
    options.tern = "test";
    options.cache = cache::Cache::open(cache::options_for(folder.path())).value();
    gpu::Store store({"cuda", "H200", "sm_90", {"sm_90"}, "580", "13.0", 1024, 49152, 32},
                     std::make_shared<CubinLoader>(), {}, {real_nvrtc()}, options);
    std::vector<gpu::Tier> tiers;
    for (const auto& pipeline : store.resolve(kernels)) {
      tiers.push_back(pipeline.value()->report.tier);
    }
    return tiers;
  };
  std::vector<gpu::KernelDescription> kernels(6);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].code = small_kernel();
    kernels[i].code.constants[0].value = std::to_string(i);
    kernels[i].entry_points = {{"scale", {}, {256, 0, 32}}};
  }
  EXPECT_EQ(start(kernels), std::vector<gpu::Tier>(6, gpu::Tier::kRuntime));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(start(kernels), std::vector<gpu::Tier>(6, gpu::Tier::kDisk));
  std::printf(
      "6 warm pipelines with NVRTC's identity: %.1f ms\n",
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
}

TEST(NvrtcCompiler, CandidatesInTheirOrder) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() + "/cuda/lib64");
  fs::create_directories(folder.path() + "/python/nvidia/cu13/lib");
  cache::write_file(folder.path() + "/cuda/lib64/libnvrtc.so.12", "");
  cache::write_file(folder.path() + "/python/nvidia/cu13/lib/libnvrtc.so.13", "");
  const std::vector<std::string> candidates =
      nvrtc_candidates({folder.path() + "/cuda", {folder.path() + "/python"}});
  ASSERT_EQ(candidates.size(), 5u);
  EXPECT_EQ(candidates[0], folder.path() + "/cuda/lib64/libnvrtc.so.12");
  EXPECT_EQ(candidates[1], "libnvrtc.so.13");
  EXPECT_EQ(candidates[4], folder.path() + "/python/nvidia/cu13/lib/libnvrtc.so.13");
  EXPECT_EQ(nvrtc_candidates({"relative/cuda", {}}).size(), 3u);
}

TEST(NvrtcCompiler, AbsenceIsNormalAndLookedForOnce) {
  int opened = 0;
  const auto nvrtc = make_nvrtc_compiler([&]() -> Result<NvrtcLibrary> {
    ++opened;
    return fail(ErrorCode::kNotFound, "NVRTC is not installed");
  });
  EXPECT_EQ(nvrtc->identity().error().code(), ErrorCode::kNotFound);
  const Job job;
  EXPECT_EQ(nvrtc->compile(job.get()).error, "NVRTC is not installed");
  EXPECT_EQ(opened, 1);
}

// An NVRTC that knows targets up to 80: PTX, which the driver links.
NvrtcLibrary old_nvrtc() {
  NvrtcLibrary library;
  library.identity = "NVRTC 11.0, build old";
  NvrtcFunctions& nvrtc = library.functions;
  nvrtc.supported_archs_count = [](int* count) { return *count = 3, 0; };
  nvrtc.supported_archs = [](int* archs) { return archs[0] = 70, archs[1] = 75, archs[2] = 80, 0; };
  nvrtc.create_program = [](void** program, const char*, const char*, int, const char* const*,
                            const char* const*) { return *program = new std::string, 0; };
  nvrtc.compile_program = [](void* program, int count, const char* const* options) {
    for (int i = 0; i < count; ++i) *static_cast<std::string*>(program) += options[i];
    return 0;
  };
  nvrtc.ptx_size = [](void* program, std::size_t* size) {
    return *size = static_cast<std::string*>(program)->size(), 0;
  };
  nvrtc.ptx = [](void* program, char* to) {
    const auto& text = *static_cast<std::string*>(program);
    return std::memcpy(to, text.data(), text.size()), 0;
  };
  nvrtc.log_size = [](void*, std::size_t* size) { return *size = 0, 0; };
  nvrtc.log = [](void*, char*) { return 0; };
  nvrtc.destroy_program = [](void** program) {
    delete static_cast<std::string*>(*program);
    return 0;
  };
  nvrtc.error_string = [](int) { return "error"; };
  return library;
}

struct RecordingLinker final : gpu::PtxLinker {
  std::string ptx;
  [[nodiscard]] Result<std::vector<std::byte>> link(std::span<const std::byte> bytes,
                                                    const std::string& target) override {
    ptx = cache::text_of(bytes);
    return fail(ErrorCode::kUnsupported, "{} needs a driver 580 or newer", target);
  }
  [[nodiscard]] std::string version() const override { return "470.1"; }
};

TEST(NvrtcCompiler, Ps33_ADeviceThatItDoesNotKnowGoesThroughTheLinker) {
  const auto open = [] { return Result<NvrtcLibrary>(old_nvrtc()); };
  const Job job;
  const gpu::CompileResult alone = make_nvrtc_compiler(open)->compile(job.get());
  EXPECT_NE(alone.error.find("does not know sm_90"), std::string::npos) << alone.error;
  EXPECT_NE(alone.error.find("compute_80"), std::string::npos);
  const auto linker = std::make_shared<RecordingLinker>();
  const auto linked = make_nvrtc_compiler(open, linker);
  const gpu::CompileResult result = linked->compile(job.get());
  EXPECT_NE(linker->ptx.find("--gpu-architecture=compute_80"), std::string::npos) << linker->ptx;
  EXPECT_NE(result.error.find("needs a driver 580 or newer"), std::string::npos);
  EXPECT_FALSE(result.is_input_error);
  EXPECT_NE(linked->identity()->version.find("470.1"), std::string::npos);
}

}  // namespace
}  // namespace tern::cuda
