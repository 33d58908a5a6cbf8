#include "backend/cuda/compile/nvcc_compiler.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "backend/cuda/compile/compile_flags.h"
#include "backend/cuda/compile/cubin.h"
#include "backend/cuda/compile/fakes_test.h"

namespace tern::cuda {
namespace {

namespace fs = std::filesystem;

#define TERN_NEEDS_NVCC(compiler) \
  if (!(compiler)->identity().ok()) GTEST_SKIP() << (compiler)->identity().error().message()

// --- with the real nvcc, without a GPU ---

TEST(NvccCompiler, CompilesARealKernelToACubin) {
  const auto nvcc = real_nvcc();
  TERN_NEEDS_NVCC(nvcc);
  for (const char* target : {"sm_90", "sm_90a"}) {
    const Job job(small_kernel(), target);
    const gpu::CompileResult result = nvcc->compile(job.get());
    ASSERT_TRUE(result.artefact) << result.error << "\n" << result.diagnostics;
    EXPECT_EQ(result.artefact->kind, gpu::PayloadKind::kCubin);
    EXPECT_EQ(result.artefact->entry_points, (std::vector<std::string>{"copy", "scale"}));
    const CubinFacts facts = read_cubin(result.artefact->bytes).value();
    EXPECT_EQ(facts.architecture, 90u);
    EXPECT_NE(std::find(facts.objects.begin(), facts.objects.end(), "scale_params_mark"),
              facts.objects.end());
  }
  const std::string version = nvcc->identity()->version;
  for (const char* part : {"release ", "Build ", "host compiler: "}) {
    EXPECT_NE(version.find(part), std::string::npos) << version;
  }
}

TEST(NvccCompiler, AMistakeIsAPropertyOfTheSources) {
  const auto nvcc = real_nvcc();
  TERN_NEEDS_NVCC(nvcc);
  Job job;
  job.code.sources[0].text += "__device__ int broken() { return nothing; }\n";
  const gpu::CompileResult result = nvcc->compile(job.get());
  EXPECT_FALSE(result.artefact);
  EXPECT_TRUE(result.is_input_error);
  EXPECT_NE(result.diagnostics.find("kernels/scale.cu("), std::string::npos) << result.diagnostics;
}

// The base of every kernel builds for the oldest target that this compiler knows.
TEST(NvccCompiler, Ps41_CompilesForTheOldestTarget) {
  const auto nvcc = real_nvcc();
  TERN_NEEDS_NVCC(nvcc);
  const Job job(small_kernel(), "sm_75");
  const gpu::CompileResult result = nvcc->compile(job.get());
  ASSERT_TRUE(result.artefact) << result.error << "\n" << result.diagnostics;
  EXPECT_EQ(read_cubin(result.artefact->bytes)->architecture, 75u);
}

// Read bytes of a cubin are untrusted: cut and flipped, never beyond the end.
TEST(Cubin, DamagedFilesAreRefusedOrReadInBounds) {
  const auto nvcc = real_nvcc();
  TERN_NEEDS_NVCC(nvcc);
  const Job job;
  std::vector<std::byte> bytes = nvcc->compile(job.get()).artefact->bytes;
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    const std::vector<std::byte> cut(bytes.begin(),
                                     bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const Result<CubinFacts> facts = read_cubin(cut);
    EXPECT_TRUE(facts.ok() || facts.error().code() == ErrorCode::kInvalidFile);
  }
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::byte before = bytes[i];
    bytes[i] = std::byte{0xFF};
    (void)read_cubin(bytes).ok();
    bytes[i] = before;
  }
  EXPECT_FALSE(read_cubin({}).ok());
}

// --- with programs that pretend ---

// A folder with an nvcc that writes the given file, and a g++.
struct Toolchain {
  TemporaryFolder folder;
  std::shared_ptr<gpu::Compiler> compiler;

  explicit Toolchain(const std::string& script, const std::string& version = "release 1.0") {
    install(script, version);
    reopen();
  }
  void install(const std::string& script, const std::string& version) const {
    write_program(folder.path() + "/nvcc",
                  "if [ \"$1\" = --version ]; then echo '" + version + "'; exit 0; fi\n" + script);
    write_program(folder.path() + "/g++", "echo 'g++ 12'\n");
  }
  void reopen() { compiler = make_nvcc_compiler({{}, folder.path() + ":/usr/bin:/bin", 5000}); }
};

TEST(NvccCompiler, FoundByItsVariableThenByPath) {
  const TemporaryFolder folder;
  EXPECT_EQ(make_nvcc_compiler({{}, folder.path(), 1000})->identity().error().code(),
            ErrorCode::kNotFound);
  EXPECT_EQ(make_nvcc_compiler({{}, {}, 1000})->identity().error().code(), ErrorCode::kNotFound);
  const Toolchain chain("exit 0");
  EXPECT_EQ(chain.compiler->identity()->location, chain.folder.path() + "/nvcc");
  const Toolchain other("exit 0", "release 2.0");
  const auto named = make_nvcc_compiler(
      {other.folder.path() + "/nvcc", chain.folder.path() + ":/usr/bin:/bin", 1000});
  EXPECT_EQ(named->identity()->version, "release 2.0; host compiler: g++ 12");
  const auto wrong =
      make_nvcc_compiler({folder.path() + "/none", chain.folder.path(), 1000})->identity();
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code(), ErrorCode::kUsage);
  EXPECT_NE(wrong.error().message().find("TERN_NVCC"), std::string::npos);
  // A relative folder of PATH is no place for a compiler.
  const fs::path before = fs::current_path();
  fs::current_path(chain.folder.path());
  EXPECT_FALSE(make_nvcc_compiler({{}, ".::", 1000})->identity().ok());
  fs::current_path(before);
}

// Moved as a whole, the toolchain is the same compiler; replaced in its place, it is another one.
TEST(NvccCompiler, Ps12_AMovedToolchainIsTheSameCompiler) {
  const Toolchain here("exit 0");
  const Toolchain there("exit 0");
  EXPECT_NE(here.compiler->identity()->location, there.compiler->identity()->location);
  EXPECT_EQ(here.compiler->identity()->version, there.compiler->identity()->version);
}
TEST(NvccCompiler, Ps13_AReplacedToolchainIsAnotherCompiler) {
  Toolchain chain("exit 0", "release 1.0, build 1");
  const std::string before = chain.compiler->identity()->version;
  chain.install("exit 0", "release 1.0, build 2");
  EXPECT_EQ(chain.compiler->identity()->version, before);  // read once a process
  chain.reopen();
  EXPECT_NE(chain.compiler->identity()->version, before);
}

TEST(NvccCompiler, GetsSourcesFlagsAndNothingOfTheEnvironment) {
  const TemporaryFolder record;
  const Toolchain chain("env > " + record.path() + "/env; echo \"$@\" > " + record.path() +
                        "/arguments; pwd > " + record.path() + "/folder; cp -r . " + record.path() +
                        "/src; exit 1");
  ::setenv("NVCC_APPEND_FLAGS", "-G", 1);
  Job job;
  job.code.options.most_registers = 64;
  job.code.options.has_debug_info = true;
  job.code.options.defines = {"A=1"};
  EXPECT_FALSE(chain.compiler->compile(job.get()).artefact);
  ::unsetenv("NVCC_APPEND_FLAGS");
  const std::string environment = cache::read_file(record.path() + "/env");
  EXPECT_EQ(environment.find("NVCC_APPEND_FLAGS"), std::string::npos);
  EXPECT_NE(environment.find("TMPDIR=" + job.scratch.path()), std::string::npos);
  const std::string arguments = cache::read_file(record.path() + "/arguments");
  for (const char* part : {"--std=c++20", "--fmad=false", "--generate-line-info",
                           "--maxrregcount=64", "-DA=1", "-DHEAD=128", "-arch=sm_90", "--cubin"}) {
    EXPECT_NE(arguments.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(cache::read_file(record.path() + "/src/math/factor.h"), job.code.sources[1].text);
  EXPECT_EQ(cache::read_file(record.path() + "/folder").find(job.scratch.path()), 0u);
}

TEST(NvccCompiler, SuccessNeedsACubinOfTheTarget) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"exit 0", "gave no cubin"},
      {"for a; do o=$a; case $p in -o) echo text > $a;; esac; p=$a; done", "gave no cubin"},
      {"kill -9 $$", "ended with status"},
      {"sleep 60", "was ended after 5 s"},
      {"echo 'sh: g++: not found'; exit 1", "status 1"},
  };
  for (const auto& [script, expected] : cases) {
    const Toolchain chain(script);
    const Job job;
    const gpu::CompileResult result = chain.compiler->compile(job.get());
    EXPECT_FALSE(result.artefact);
    EXPECT_NE(result.error.find(expected), std::string::npos) << result.error;
    EXPECT_FALSE(result.is_input_error) << script;
  }
}

TEST(NvccCompiler, SourcesStayInTheScratchFolder) {
  const Toolchain chain("exit 0");
  const TemporaryFolder outside;
  for (const std::string& name : {outside.path() + "/x.cu", std::string("../../x.cu"),
                                  std::string("a/../../x.cu"), std::string()}) {
    Job job;
    job.code.sources[0].name = name;
    EXPECT_NE(chain.compiler->compile(job.get()).error.find("not a name below a folder"),
              std::string::npos);
  }
  EXPECT_TRUE(fs::is_empty(outside.path()));
}

TEST(NvccCompiler, TargetsHaveNumbers) {
  EXPECT_EQ(number_of_target("sm_90a"), 90);
  EXPECT_EQ(number_of_target("compute_120"), 120);
  EXPECT_EQ(number_of_target("sm_"), 0);
  EXPECT_EQ(number_of_target(""), 0);
}

}  // namespace
}  // namespace tern::cuda
