#include "backend/gpu/pipeline_store/driver_compiler.h"

#include <utility>

namespace tern::gpu {
namespace {

class DriverCompiler final : public Compiler {
 public:
  explicit DriverCompiler(std::shared_ptr<PtxLinker> linker) : linker_(std::move(linker)) {}

  [[nodiscard]] Tier tier() const override { return Tier::kDriver; }
  [[nodiscard]] std::string name() const override { return "the driver's linker"; }
  [[nodiscard]] Result<CompilerIdentity> identity() override {
    return CompilerIdentity{"driver linker " + linker_->version(), "the driver"};
  }
  [[nodiscard]] CompileResult compile(const CompileJob& job) override {
    CompileResult result;
    Result<std::vector<std::byte>> linked = linker_->link(job.ptx, job.target);
    if (linked.ok()) {
      result.artefact = Compiled{PayloadKind::kCubin, std::move(linked).value(), {}};
    } else {
      result.error = linked.error().message();
      result.diagnostics = cut_diagnostics(result.error);
      result.is_input_error = linked.error().code() != ErrorCode::kDevice;
    }
    return result;
  }
  [[nodiscard]] std::int64_t expected_ms() const override { return 300; }

 private:
  std::shared_ptr<PtxLinker> linker_;
};

}  // namespace

std::shared_ptr<Compiler> make_driver_compiler(std::shared_ptr<PtxLinker> linker) {
  return std::make_shared<DriverCompiler>(std::move(linker));
}

}  // namespace tern::gpu
