// What tests of the store share: a driver and compilers of a toy language over which the real
// store, cache and file format run.
//
// A source has lines "fn NAME PARAMS_BYTES LAYOUT MOST_THREADS SHARED" and "gain X"; the word
// "mistake" does not compile. Code is text: the target, an origin (hash of all that the compiler
// read), and the lines. The driver refuses code of another target, as real ones do.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cache/faults_test.h"
#include "backend/gpu/pipeline_store/driver_compiler.h"
#include "backend/gpu/pipeline_store/store.h"
#include "base/hash.h"

namespace tern::gpu {

using cache::bytes_of;
using cache::FaultyFileSystem;
using cache::TemporaryFolder;
using cache::text_of;

struct FakeFunction {
  std::string origin;
  double gain = 1;
  LoadedEntry entry;
};

struct FakeModule final : Module {
  std::map<std::string, FakeFunction> functions;
};

class FakeLoader : public Loader {
 public:
  std::vector<std::string> targets = {"sm_90a", "sm_90"};  // that it runs
  std::string fails_with;                                  // every load: a failing device
  std::string refuses;  // code with this word in it is no valid image
  std::atomic<int> loads{0};
  std::map<std::string, int> loads_of;  // by name

  [[nodiscard]] Result<std::shared_ptr<Module>> load(PayloadKind /*kind*/,
                                                     std::span<const std::byte> bytes,
                                                     const std::string& name) override {
    ++loads;
    ++loads_of[name];
    if (!fails_with.empty()) return fail(ErrorCode::kDevice, "{}", fails_with);
    const std::string text = text_of(bytes);
    std::istringstream lines(text);
    std::string word;
    std::string target;
    if (!(lines >> word >> target) || word != "CODE" ||
        std::find(targets.begin(), targets.end(), target) == targets.end() ||
        (!refuses.empty() && text.find(refuses) != std::string::npos)) {
      return fail(ErrorCode::kInvalidFile, "invalid device image");
    }
    auto module = std::make_shared<FakeModule>();
    std::string origin;
    double gain = 1;
    while (lines >> word) {
      if (word == "origin") lines >> origin;
      if (word == "gain") lines >> gain;
      if (word != "fn") continue;
      FakeFunction function;
      ParamsMark mark;
      lines >> function.entry.name >> mark.bytes >> mark.layout >> function.entry.most_threads >>
          function.entry.static_shared;
      if (mark.bytes != 0) function.entry.params = mark;
      function.entry.simd_width = 32;
      function.origin = origin;
      module->functions[function.entry.name] = function;
    }
    for (auto& [function_name, function] : module->functions) {
      function.gain = gain;
      function.entry.handle = &function;
    }
    return std::shared_ptr<Module>(module);
  }
  [[nodiscard]] Result<LoadedEntry> find(Module& module, const EntryPoint& entry_point,
                                         const std::vector<Constant>& /*constants*/) override {
    auto& functions = static_cast<FakeModule&>(module).functions;
    const auto at = functions.find(entry_point.name);
    if (at == functions.end()) {
      return fail(ErrorCode::kNotFound, "the entry point {} is missing", entry_point.name);
    }
    return at->second.entry;
  }
};

inline const FakeFunction& function_of(const Pipeline& pipeline, std::size_t entry = 0) {
  return *static_cast<const FakeFunction*>(pipeline.entries[entry].handle);
}

// The hash of all that a compiler reads: two codes of one origin are the same kernel.
inline std::string origin_of(const CodeInputs& code, const std::string& target,
                             const std::string& version) {
  std::string text = source_hash(code.sources) + canonical_text(code.constants) +
                     canonical_text(code.options) + target + version;
  return sha256_hex(text).substr(0, 16);
}

inline std::string fake_code(const CodeInputs& code, const std::string& target,
                             const std::string& origin) {
  std::string text = "CODE " + target + "\norigin " + origin + "\n";
  for (const SourceFile& source : code.sources) text += source.text + "\n";
  return text;
}

class FakeCompiler final : public Compiler {
 public:
  FakeCompiler(Tier tier, std::string identity) : version(std::move(identity)), tier_(tier) {}

  std::string version;
  bool is_absent = false;
  bool has_random_comment = false;
  double gain = 1;      // a miscompilation
  std::string breaks;   // kernels of this stem are not compiled: surroundings
  std::string forgets;  // an entry point that gets lost
  std::int64_t delay_ms = 0;
  std::int64_t expected = 1;
  bool asks_for_scratch = true;
  PayloadKind makes = PayloadKind::kCubin;
  std::atomic<int> compiles{0};
  std::atomic<int> running{0};
  std::atomic<int> most_running{0};

  [[nodiscard]] Tier tier() const override { return tier_; }
  [[nodiscard]] std::string name() const override { return "fake " + std::string(name_of(tier_)); }
  [[nodiscard]] bool needs_scratch() const override { return asks_for_scratch; }
  [[nodiscard]] std::int64_t expected_ms() const override { return expected; }
  [[nodiscard]] Result<CompilerIdentity> identity() override {
    if (is_absent) return fail(ErrorCode::kNotFound, "{} is not here", name());
    return CompilerIdentity{version, "/somewhere"};
  }
  [[nodiscard]] CompileResult compile(const CompileJob& job) override {
    ++compiles;
    const int now = ++running;
    int most = most_running;
    while (now > most && !most_running.compare_exchange_weak(most, now)) {
    }
    if (delay_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    CompileResult result = compile_now(job);
    --running;
    return result;
  }

 private:
  [[nodiscard]] CompileResult compile_now(const CompileJob& job) const {
    CompileResult result;
    if (!breaks.empty() && job.code.stem == breaks) {
      result.error = "no space for the compiler";
      return result;
    }
    if (asks_for_scratch) cache::write_file(job.scratch + "/source", job.code.sources[0].text);
    std::string text = fake_code(job.code, job.target, origin_of(job.code, job.target, version));
    if (text.find("mistake") != std::string::npos) {
      result.error = "the sources do not compile";
      result.diagnostics = job.code.sources[0].name + "(1): error: mistake";
      result.is_input_error = true;
      return result;
    }
    if (has_random_comment) text += fmt::format("# {}\n", std::random_device{}());
    if (gain != 1) text += fmt::format("gain {}\n", gain);
    if (!forgets.empty()) {
      const std::size_t at = text.find("fn " + forgets);
      if (at != std::string::npos) text.replace(at, 2, "no");
    }
    result.artefact = Compiled{makes, bytes_of(text), {}};
    for (std::istringstream lines(text); lines >> text;) {
      if (text != "fn") continue;
      lines >> text;
      result.artefact->entry_points.push_back(text);
    }
    return result;
  }

  Tier tier_;
};

class FakeLinker final : public PtxLinker {
 public:
  std::string driver = "580.1";
  std::string refuses;  // with this error
  int links = 0;
  [[nodiscard]] Result<std::vector<std::byte>> link(std::span<const std::byte> ptx,
                                                    const std::string& target) override {
    ++links;
    if (!refuses.empty()) return fail(ErrorCode::kUnsupported, "{}", refuses);
    std::string text = text_of(ptx);
    text.replace(0, text.find('\n'), "CODE " + target);
    return bytes_of(text);
  }
  [[nodiscard]] std::string version() const override { return driver; }
};

inline SelfTest gain_test() {
  return {"1", [](const Pipeline& pipeline) -> Result<SelfTestOutcome> {
            SelfTestOutcome outcome;
            const FakeFunction& function = function_of(pipeline);
            outcome.error = std::abs(function.gain - 1);
            outcome.tolerance = 1e-6;
            outcome.passed = outcome.error <= outcome.tolerance;
            outcome.digest = fmt::format("{}", function.gain);
            return outcome;
          }};
}

// A kernel `name` of one entry point, whose source includes a header.
inline KernelDescription fake_kernel(const std::string& name, const std::string& extra = "") {
  KernelDescription kernel;
  kernel.code.stem = name;
  kernel.code.variant = "plain";
  kernel.code.sources = {
      {name + ".cu", fmt::format("#include \"common.h\"\nfn {} 32 7 1024 64\n{}", name, extra)},
      {"common.h", "// common\n"}};
  kernel.entry_points = {{name, {32, 7}, {256, 1024, 32}}};
  kernel.self_test = gain_test();
  return kernel;
}

// A machine: one device, a folder on disk, compilers. `store()` is a fresh process on it.
struct Machine {
  std::shared_ptr<TemporaryFolder> folder = std::make_shared<TemporaryFolder>();
  DeviceDescription device = {
      "cuda", "Fake 1",  "sm_90a", {"sm_90a", "sm_90"}, "580.1 build 3", "13.0",
      1024,   48 * 1024, 32};
  std::shared_ptr<FakeLoader> loader = std::make_shared<FakeLoader>();
  std::shared_ptr<FakeCompiler> offline =
      std::make_shared<FakeCompiler>(Tier::kOffline, "offline 13.0.88 build 1");
  std::shared_ptr<FakeCompiler> runtime =
      std::make_shared<FakeCompiler>(Tier::kRuntime, "runtime 13.0 build 65be");
  std::shared_ptr<FakeLinker> linker;
  EmbeddedTable embedded;
  StoreOptions options;
  cache::Options cache_options = cache::options_for(folder->path());
  cache::System system = cache::quick_system();
  std::shared_ptr<std::vector<std::string>> warnings = std::make_shared<std::vector<std::string>>();
  std::shared_ptr<std::vector<CompileNotice>> notices =
      std::make_shared<std::vector<CompileNotice>>();
  std::shared_ptr<std::mutex> mutex = std::make_shared<std::mutex>();

  Machine() { options.tern = "1.0"; }

  [[nodiscard]] std::unique_ptr<Store> store() {
    StoreOptions given = options;
    given.warn = [to = warnings, lock = mutex](std::string_view text) {
      const std::lock_guard guard(*lock);
      to->emplace_back(text);
    };
    given.notice = [to = notices](const CompileNotice& notice) { to->push_back(notice); };
    cache::Options for_cache = cache_options;
    for_cache.mode = options.switches.cache;
    for_cache.tern = options.tern;
    for_cache.warn = given.warn;
    given.cache = cache::Cache::open(for_cache, system).value();
    std::vector<std::shared_ptr<Compiler>> compilers = {offline, runtime};
    if (linker) compilers.push_back(make_driver_compiler(linker));
    return std::make_unique<Store>(device, loader, embedded, compilers, given);
  }
  [[nodiscard]] int compiles() const { return offline->compiles + runtime->compiles; }

  // Resolves in a fresh process and looks whether it is the right kernel: made from this source,
  // for this target, by one of the compilers that are here.
  Tier expect_right(const KernelDescription& kernel) {
    const auto fresh = store();
    const Result<PipelinePtr> pipeline = fresh->resolve(kernel);
    if (!pipeline.ok()) {
      ADD_FAILURE() << pipeline.error().message();
      return Tier::kDriver;
    }
    expect_origin(kernel, **pipeline);
    return (*pipeline)->report.tier;
  }
  void expect_origin(const KernelDescription& kernel, const Pipeline& pipeline) const {
    const std::string& origin = function_of(pipeline).origin;
    EXPECT_TRUE(origin == origin_of(kernel.code, device.target, offline->version) ||
                origin == origin_of(kernel.code, device.target, runtime->version))
        << "a wrong kernel";
  }
};

}  // namespace tern::gpu
