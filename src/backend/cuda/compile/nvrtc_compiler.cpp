#include "backend/cuda/compile/nvrtc_compiler.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "backend/cuda/compile/compile_flags.h"
#include "backend/cuda/compile/cubin.h"

namespace tern::cuda {
namespace {

constexpr int kCompilationFailed = 6;  // NVRTC_ERROR_COMPILATION

// A program, destroyed with the object.
class Program {
 public:
  Program(const NvrtcFunctions& functions, const std::vector<gpu::SourceFile>& sources)
      : functions_(functions) {
    std::vector<const char*> texts;
    std::vector<const char*> names;
    for (std::size_t i = 1; i < sources.size(); ++i) {
      texts.push_back(sources[i].text.c_str());
      names.push_back(sources[i].name.c_str());
    }
    status_ = functions_.create_program(&program_, sources.front().text.c_str(),
                                        sources.front().name.c_str(),
                                        static_cast<int>(texts.size()), texts.data(), names.data());
  }
  ~Program() {
    if (program_ != nullptr) functions_.destroy_program(&program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] int status() const { return status_; }

  [[nodiscard]] int compile(const std::vector<std::string>& options) {
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    return functions_.compile_program(program_, static_cast<int>(texts.size()), texts.data());
  }
  [[nodiscard]] std::string log() const {
    return read(functions_.log_size, functions_.log).value_or(std::string());
  }
  [[nodiscard]] std::optional<std::string> code(bool is_ptx) const {
    return is_ptx ? read(functions_.ptx_size, functions_.ptx)
                  : read(functions_.cubin_size, functions_.cubin);
  }

 private:
  [[nodiscard]] std::optional<std::string> read(int (*size_of)(void*, std::size_t*),
                                                int (*copy)(void*, char*)) const {
    std::size_t size = 0;
    if (size_of(program_, &size) != 0) return std::nullopt;
    std::string text(size, '\0');
    if (size > 0 && copy(program_, text.data()) != 0) return std::nullopt;
    return text;
  }

  const NvrtcFunctions& functions_;
  void* program_ = nullptr;
  int status_ = 0;
};

class NvrtcCompiler final : public gpu::Compiler {
 public:
  NvrtcCompiler(std::function<Result<NvrtcLibrary>()> open, std::shared_ptr<gpu::PtxLinker> linker)
      : open_(std::move(open)), linker_(std::move(linker)) {}

  [[nodiscard]] gpu::Tier tier() const override { return gpu::Tier::kRuntime; }
  [[nodiscard]] std::string name() const override { return "NVRTC"; }
  [[nodiscard]] std::int64_t expected_ms() const override { return 400; }

  [[nodiscard]] Result<gpu::CompilerIdentity> identity() override {
    const Result<NvrtcLibrary>& found = library();
    if (!found.ok()) return found.error();
    // Where code may pass through the driver's linker, that belongs to the compiler.
    const std::string linker = linker_ ? "; linker " + linker_->version() : std::string();
    return gpu::CompilerIdentity{found->identity + linker, found->location};
  }

  [[nodiscard]] gpu::CompileResult compile(const gpu::CompileJob& job) override {
    gpu::CompileResult result;
    const Result<NvrtcLibrary>& found = library();
    if (!found.ok()) {
      result.error = found.error().message();
      return result;
    }
    const NvrtcFunctions& nvrtc = found->functions;
    const Result<std::string> target = target_for(nvrtc, job.target);
    if (!target.ok()) {
      result.error = target.error().message();
      return result;
    }
    const bool is_ptx = *target != job.target;
    std::vector<std::string> options = compile_flags(job.code);
    options.push_back("--gpu-architecture=" + *target);
    Program program(nvrtc, job.code.sources);
    const int status = program.status() != 0 ? program.status() : program.compile(options);
    if (program.status() == 0) result.diagnostics = gpu::cut_diagnostics(program.log());
    while (result.diagnostics.ends_with('\0')) result.diagnostics.pop_back();
    if (status != 0) {
      result.is_input_error = status == kCompilationFailed;
      result.error = fmt::format("NVRTC: {}{}", nvrtc.error_string(status),
                                 result.is_input_error ? ": the sources do not compile" : "");
      return result;
    }
    const std::optional<std::string> code = program.code(is_ptx);
    if (!code) {
      result.error = "NVRTC compiled the sources and gave no code";
      return result;
    }
    take_code(*code, is_ptx, job.target, result);
    return result;
  }

 private:
  // Opened once; an absent library is not looked for again.
  const Result<NvrtcLibrary>& library() {
    const std::lock_guard lock(mutex_);
    if (!library_) library_ = open_();
    return *library_;
  }

  // The device's own target where this NVRTC knows it; otherwise the newest virtual one below it.
  [[nodiscard]] Result<std::string> target_for(const NvrtcFunctions& nvrtc,
                                               const std::string& target) const {
    int count = 0;
    std::vector<int> known;
    if (nvrtc.supported_archs_count(&count) == 0 && count > 0) {
      known.resize(static_cast<std::size_t>(count));
      if (nvrtc.supported_archs(known.data()) != 0) known.clear();
    }
    const int wanted = number_of_target(target);
    if (std::find(known.begin(), known.end(), wanted) != known.end()) return target;
    int best = 0;
    for (const int number : known) {
      if (number < wanted) best = std::max(best, number);
    }
    if (best == 0 || !linker_) {
      return fail(ErrorCode::kUnsupported,
                  "this NVRTC does not know {} (its newest older target is compute_{}){}", target,
                  best, linker_ ? "" : ", and there is no linker for its PTX");
    }
    return fmt::format("compute_{}", best);
  }

  void take_code(const std::string& code, bool is_ptx, const std::string& target,
                 gpu::CompileResult& result) const {
    const auto raw = std::as_bytes(std::span(code));
    std::vector<std::byte> bytes(raw.begin(), raw.end());
    if (is_ptx) {
      Result<std::vector<std::byte>> linked = linker_->link(bytes, target);
      if (!linked.ok()) {
        result.error = linked.error().message();
        return;
      }
      bytes = std::move(linked).value();
    }
    const Result<CubinFacts> facts = read_cubin(bytes);
    if (!facts.ok()) {
      result.error = "NVRTC gave no cubin: " + facts.error().message();
      return;
    }
    if (static_cast<int>(facts->architecture) != number_of_target(target)) {
      result.error =
          fmt::format("NVRTC gave code for sm_{}, expected {}", facts->architecture, target);
      return;
    }
    result.artefact =
        gpu::Compiled{gpu::PayloadKind::kCubin, std::move(bytes), facts->entry_points};
  }

  std::function<Result<NvrtcLibrary>()> open_;
  std::shared_ptr<gpu::PtxLinker> linker_;
  std::mutex mutex_;
  std::optional<Result<NvrtcLibrary>> library_;
};

}  // namespace

std::shared_ptr<gpu::Compiler> make_nvrtc_compiler(std::function<Result<NvrtcLibrary>()> open,
                                                   std::shared_ptr<gpu::PtxLinker> linker) {
  return std::make_shared<NvrtcCompiler>(std::move(open), std::move(linker));
}

}  // namespace tern::cuda
