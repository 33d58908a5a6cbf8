#include "backend/cuda/store/cuda_loader.h"

#include <array>
#include <fstream>

#include "backend/cuda/plan/cuda_plan.h"

namespace tern::cuda {
namespace {

class CudaModule final : public gpu::Module {
 public:
  CudaModule(std::shared_ptr<Context> context, ModuleHandle* handle)
      : context_(std::move(context)), handle_(handle) {}
  ~CudaModule() override {
    if (context_->make_current().ok()) (void)context_->api().module_unload(handle_);
  }
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;
  [[nodiscard]] ModuleHandle* handle() const { return handle_; }

 private:
  std::shared_ptr<Context> context_;
  ModuleHandle* handle_;
};

class CudaLoader final : public gpu::Loader {
 public:
  explicit CudaLoader(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  Result<std::shared_ptr<gpu::Module>> load(gpu::PayloadKind kind, std::span<const std::byte> bytes,
                                            const std::string& name) override {
    if (kind != gpu::PayloadKind::kCubin)
      return fail(ErrorCode::kUnsupported, "[cuda] {} is no cubin", name);
    TERN_TRY(context_->make_current());
    ModuleHandle* handle = nullptr;
    TERN_TRY(blame(context_->api().module_load(&handle, bytes.data()), "cuModuleLoadData", name));
    return std::shared_ptr<gpu::Module>(std::make_shared<CudaModule>(context_, handle));
  }

  Result<gpu::LoadedEntry> find(gpu::Module& module, const gpu::EntryPoint& entry_point,
                                const std::vector<gpu::Constant>&) override {
    TERN_TRY(context_->make_current());
    ModuleHandle* const handle = static_cast<CudaModule&>(module).handle();
    gpu::LoadedEntry entry;
    entry.name = entry_point.name;
    FunctionHandle* function = nullptr;
    const Status status =
        context_->api().module_function(&function, handle, entry_point.name.c_str());
    if (status == kNotFoundStatus)
      return fail(ErrorCode::kNotFound, "[cuda] there is no entry point {}", entry_point.name);
    TERN_TRY(blame(status, "cuModuleGetFunction", entry_point.name));
    entry.handle = function;
    int value = 0;
    const auto read = [&](FunctionAttribute which) {
      return blame(context_->api().function_attribute(&value, which, function),
                   "cuFuncGetAttribute", entry_point.name);
    };
    TERN_TRY(read(kMaxThreads));
    entry.most_threads = static_cast<std::uint32_t>(value);
    TERN_TRY(read(kStaticSharedBytes));
    entry.static_shared = static_cast<std::uint64_t>(value);
    TERN_TRY(read(kRegisters));
    entry.registers = static_cast<std::uint32_t>(value);
    entry.simd_width = 32;
    TERN_ASSIGN(entry.params, params_mark(handle, entry_point.name));
    return entry;
  }

 private:
  // A device that is lost is the device's fault; anything else says that the code does not fit.
  Result<void> blame(Status status, const char* call, const std::string& name) const {
    if (status == kSuccess) return {};
    const Result<void> result = context_->check(status, call);
    if (is_sticky(status) || status == kOutOfMemoryStatus) return result;
    int version = 0;
    (void)context_->api().driver_version(&version);
    return fail(ErrorCode::kUnsupported, "{} for {}; the driver supports CUDA {}",
                result.error().message(), name, version_text(version));
  }

  Result<std::optional<gpu::ParamsMark>> params_mark(ModuleHandle* module,
                                                     const std::string& entry) const {
    Address address = 0;
    std::size_t bytes = 0;
    const std::string name = gpu::params_mark_name(entry);
    const Status status = context_->api().module_global(&address, &bytes, module, name.c_str());
    std::array<std::uint64_t, 2> mark{};
    if (status == kNotFoundStatus || (status == kSuccess && bytes != sizeof mark))
      return std::optional<gpu::ParamsMark>();
    TERN_TRY(blame(status, "cuModuleGetGlobal", name));
    TERN_ASSIGN(const Stream stream, Stream::make(context_));
    TERN_TRY(stream.copy_to_host(mark.data(), address, bytes));
    TERN_TRY(stream.synchronize());
    return std::optional(gpu::ParamsMark{mark[0], mark[1]});
  }

  const std::shared_ptr<Context> context_;
};

class CudaPtxLinker final : public gpu::PtxLinker {
 public:
  CudaPtxLinker(std::shared_ptr<Context> context, std::string driver)
      : context_(std::move(context)), driver_(std::move(driver)) {}

  // The link is for the device of the context, whose target the store asks for.
  Result<std::vector<std::byte>> link(std::span<const std::byte> ptx,
                                      const std::string& target) override {
    TERN_TRY(context_->make_current());
    const DriverApi& api = context_->api();
    LinkHandle* link = nullptr;
    TERN_TRY(context_->check(api.link_create(0, nullptr, nullptr, &link), "cuLinkCreate"));
    // The driver reads PTX as text that ends with a zero.
    std::vector<std::byte> text(ptx.begin(), ptx.end());
    text.push_back(std::byte{0});
    Status status = api.link_add(link, kLinkInputPtx, text.data(), text.size(), "kernel.ptx", 0,
                                 nullptr, nullptr);
    void* cubin = nullptr;
    std::size_t bytes = 0;
    if (status == kSuccess) status = api.link_complete(link, &cubin, &bytes);
    std::vector<std::byte> result;
    if (status == kSuccess)
      result.assign(static_cast<std::byte*>(cubin), static_cast<std::byte*>(cubin) + bytes);
    (void)api.link_destroy(link);  // the cubin goes with it
    if (status == kSuccess) return result;
    const Result<void> refused = context_->check(status, "cuLinkComplete");
    return fail(is_sticky(status) ? ErrorCode::kDevice : ErrorCode::kUnsupported,
                "{}; a driver newer than {} may link this PTX for {}", refused.error().message(),
                driver_, target);
  }
  [[nodiscard]] std::string version() const override { return driver_; }

 private:
  const std::shared_ptr<Context> context_;
  const std::string driver_;
};

// The driver's build, where the system tells it.
std::string driver_build() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::shared_ptr<gpu::Loader> make_cuda_loader(std::shared_ptr<Context> context) {
  return std::make_shared<CudaLoader>(std::move(context));
}

std::shared_ptr<gpu::PtxLinker> make_ptx_linker(std::shared_ptr<Context> context,
                                                std::string driver) {
  return std::make_shared<CudaPtxLinker>(std::move(context), std::move(driver));
}

std::vector<std::string> accepted_targets(std::string_view architecture) {
  const int number = architecture_number(architecture);
  std::vector<std::string> targets = {fmt::format("sm_{}a", number)};
  for (int n = number; n >= number / 10 * 10; --n) targets.push_back(fmt::format("sm_{}", n));
  return targets;
}

gpu::DeviceDescription describe_device(const Context& context, const std::string& product,
                                       const std::string& architecture) {
  gpu::DeviceDescription d;
  d.backend = "cuda";
  d.name = product;
  d.target = architecture;
  d.accepts = accepted_targets(architecture);
  int version = 0;
  (void)context.api().driver_version(&version);
  const std::string build = driver_build();
  d.driver = build.empty() ? version_text(version) : version_text(version) + " " + build;
  d.runtime = "driver API " + version_text(version);
  d.most_threads = 1024;
  const Result<int> shared = context.attribute(kSharedBytesPerBlock);
  if (shared.ok()) d.most_shared = static_cast<std::uint64_t>(*shared);
  return d;
}

}  // namespace tern::cuda
