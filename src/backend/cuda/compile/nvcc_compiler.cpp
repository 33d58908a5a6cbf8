#include "backend/cuda/compile/nvcc_compiler.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/cuda/compile/compile_flags.h"
#include "backend/cuda/compile/cubin.h"
#include "base/env.h"

namespace tern::cuda {
namespace {

namespace fs = std::filesystem;

bool is_program(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// Relative folders of PATH are passed over: a program of the current folder is nobody's compiler.
std::optional<std::string> find_in_path(std::string_view path, std::string_view name) {
  for (;;) {
    const std::size_t end = path.find(':');
    const std::string_view folder = path.substr(0, end);
    if (folder.starts_with('/')) {
      std::string candidate = fmt::format("{}/{}", folder, name);
      if (is_program(candidate)) return candidate;
    }
    if (end == std::string_view::npos) return std::nullopt;
    path.remove_prefix(end + 1);
  }
}

// The lines of a version text, without those that say nothing about the build.
std::string version_lines(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("Copyright")) {
      if (!lines.empty()) lines += "; ";
      lines += line;
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

// A name that stays below the folder it is put in.
bool is_contained(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const fs::path& part : path) {
    if (part == "..") return false;
  }
  return true;
}

Result<void> write_sources(const fs::path& folder, const std::vector<gpu::SourceFile>& sources) {
  for (const gpu::SourceFile& source : sources) {
    if (!is_contained(source.name)) {
      return fail(ErrorCode::kInvalidArgument, "kernel source '{}': not a name below a folder",
                  source.name);
    }
    const fs::path path = folder / source.name;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    std::ofstream file(path, std::ios::binary);
    file << source.text;
    file.close();
    if (error || !file) {
      return fail(ErrorCode::kIo, "kernel source '{}' cannot be written to {}", source.name,
                  path.string());
    }
  }
  return {};
}

std::vector<std::byte> read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// An error at a place in a source, not one of the surroundings (no host compiler, a full disk).
bool names_a_source(std::string_view diagnostics, const std::vector<gpu::SourceFile>& sources) {
  if (diagnostics.find("error") == std::string_view::npos) return false;
  for (const gpu::SourceFile& source : sources) {
    for (const char* mark : {"(", ":"}) {
      if (diagnostics.find(source.name + mark) != std::string_view::npos) return true;
    }
  }
  return diagnostics.find("ptxas error") != std::string_view::npos;
}

class NvccCompiler final : public gpu::Compiler {
 public:
  NvccCompiler(NvccOptions options, std::shared_ptr<gpu::ProcessRunner> runner)
      : options_(std::move(options)), runner_(std::move(runner)) {}

  [[nodiscard]] gpu::Tier tier() const override { return gpu::Tier::kOffline; }
  [[nodiscard]] std::string name() const override { return "nvcc"; }
  [[nodiscard]] bool needs_scratch() const override { return true; }
  [[nodiscard]] std::int64_t expected_ms() const override { return 1500; }

  [[nodiscard]] Result<gpu::CompilerIdentity> identity() override {
    const std::lock_guard lock(mutex_);
    if (!identity_) identity_ = ask();
    return *identity_;
  }

  [[nodiscard]] gpu::CompileResult compile(const gpu::CompileJob& job) override {
    gpu::CompileResult result;
    const Result<gpu::CompilerIdentity> who = identity();
    if (!who.ok()) {
      result.error = who.error().message();
      return result;
    }
    const fs::path scratch = job.scratch;
    const fs::path sources = scratch / "src";
    const fs::path output = scratch / "kernel.cubin";
    if (const Result<void> written = write_sources(sources, job.code.sources); !written.ok()) {
      result.error = written.error().message();
      return result;
    }
    gpu::ProcessRequest request = request_for(who->location);
    request.folder = sources.string();
    request.environment.push_back("TMPDIR=" + job.scratch);
    for (std::string& flag : compile_flags(job.code)) request.arguments.push_back(std::move(flag));
    const int level = job.code.options.optimisation;
    for (const std::string& argument :
         {"-arch=" + job.target, fmt::format("-Xptxas=-O{}", level), std::string("--cubin"),
          std::string("-I."), std::string("-o"), output.string(), job.code.sources.front().name}) {
      request.arguments.push_back(argument);
    }
    const Result<gpu::ProcessResult> ended = runner_->run(request);
    if (!ended.ok()) {
      result.error = ended.error().message();
      return result;
    }
    judge(*ended, output, job, result);
    return result;
  }

 private:
  [[nodiscard]] gpu::ProcessRequest request_for(const std::string& program) const {
    gpu::ProcessRequest request;
    request.arguments = {program};
    // What could reach the code (NVCC_APPEND_FLAGS, CPATH, ...) is left out.
    request.environment = {"PATH=" + options_.path.value_or("/usr/bin:/bin"), "LC_ALL=C"};
    request.most_ms = options_.most_ms;
    return request;
  }

  [[nodiscard]] Result<std::string> version_of(const std::string& program) const {
    gpu::ProcessRequest request = request_for(program);
    request.arguments.emplace_back("--version");
    request.most_ms = std::min<std::int64_t>(options_.most_ms, 10000);
    TERN_ASSIGN(const gpu::ProcessResult ended, runner_->run(request));
    std::string lines = version_lines(ended.output);
    if (ended.exit_status != 0 || lines.empty()) {
      return fail(ErrorCode::kUnsupported, "{} --version does not work (status {}): {}", program,
                  ended.exit_status, gpu::cut_diagnostics(ended.output, 500));
    }
    return lines;
  }

  // The program's own words, and the first line of the host compiler whose preprocessor it calls.
  [[nodiscard]] Result<gpu::CompilerIdentity> ask() const {
    std::string program;
    if (options_.tern_nvcc) {
      program = *options_.tern_nvcc;
      if (!is_program(program)) {
        return fail(ErrorCode::kUsage, "TERN_NVCC: {} is no program; give the path of nvcc",
                    program);
      }
    } else if (auto found = find_in_path(options_.path.value_or(""), "nvcc")) {
      program = std::move(*found);
    } else {
      return fail(ErrorCode::kNotFound, "nvcc is neither named by TERN_NVCC nor found in PATH");
    }
    TERN_ASSIGN(std::string version, version_of(program));
    std::string host = "none";
    if (const auto found = find_in_path(options_.path.value_or(""), "g++")) {
      if (const Result<std::string> lines = version_of(*found); lines.ok()) {
        host = lines->substr(0, lines->find(';'));
      }
    }
    return gpu::CompilerIdentity{fmt::format("{}; host compiler: {}", version, host), program};
  }

  void judge(const gpu::ProcessResult& ended, const fs::path& output, const gpu::CompileJob& job,
             gpu::CompileResult& result) const {
    result.diagnostics = gpu::cut_diagnostics(ended.output);
    if (ended.has_timed_out) {
      result.error = fmt::format("nvcc was ended after {} s", options_.most_ms / 1000);
      return;
    }
    if (ended.exit_status != 0) {
      result.is_input_error = names_a_source(ended.output, job.code.sources);
      result.error = fmt::format("nvcc ended with status {}{}", ended.exit_status,
                                 result.is_input_error ? ": the sources do not compile" : "");
      return;
    }
    std::vector<std::byte> bytes = read_bytes(output);
    const Result<CubinFacts> facts = read_cubin(bytes);
    if (!facts.ok()) {
      result.error = "nvcc reported success and gave no cubin: " + facts.error().message();
      return;
    }
    if (static_cast<int>(facts->architecture) != number_of_target(job.target)) {
      result.error =
          fmt::format("nvcc gave code for sm_{}, expected {}", facts->architecture, job.target);
      return;
    }
    result.artefact =
        gpu::Compiled{gpu::PayloadKind::kCubin, std::move(bytes), facts->entry_points};
  }

  NvccOptions options_;
  std::shared_ptr<gpu::ProcessRunner> runner_;
  std::mutex mutex_;
  std::optional<Result<gpu::CompilerIdentity>> identity_;
};

}  // namespace

NvccOptions read_nvcc_options() {
  NvccOptions options;
  options.tern_nvcc = environment_variable("TERN_NVCC");
  options.path = environment_variable("PATH");
  return options;
}

std::shared_ptr<gpu::Compiler> make_nvcc_compiler(NvccOptions options,
                                                  std::shared_ptr<gpu::ProcessRunner> runner) {
  return std::make_shared<NvccCompiler>(std::move(options), std::move(runner));
}

}  // namespace tern::cuda
