#include "backend/cuda/core/modules.h"

#include "backend/cuda/embed/embedded.h"
#include "backend/cuda/store/cuda_store.h"

namespace tern::cuda {
namespace {

// Kernels of a plain target run on every later device of the same major version.
bool runs_on(std::string_view code, std::string_view device) {
  if (code == device) return true;
  const bool is_plain = !code.empty() && code.back() >= '0' && code.back() <= '9';
  return is_plain && code.size() == device.size() &&
         code.substr(0, code.size() - 1) == device.substr(0, device.size() - 1) &&
         code.back() <= device.back();
}

std::string_view best_target(std::string_view source, std::string_view device, std::string& known) {
  std::string_view best;
  for (const EmbeddedCubin& cubin : embedded_cubins()) {
    if (cubin.source != source) continue;
    known += known.empty() ? "" : ", ";
    known += cubin.architecture;
    if (runs_on(cubin.architecture, device) && cubin.architecture > best) best = cubin.architecture;
  }
  return best;
}

}  // namespace

Modules::Modules(std::shared_ptr<Context> context, std::string architecture,
                 std::shared_ptr<CudaStore> store)
    : context_(std::move(context)),
      architecture_(std::move(architecture)),
      store_(std::move(store)) {}

Modules::~Modules() {
  if (!context_->make_current().ok()) return;
  for (auto& [source, module] : modules_)
    if (module.ok()) (void)context_->api().module_unload(*module);
}

Result<ModuleHandle*> Modules::module(std::string_view source) {
  if (const auto found = modules_.find(source); found != modules_.end()) return found->second;
  const auto load = [&]() -> Result<ModuleHandle*> {
    std::string known;
    const std::string_view architecture = best_target(source, architecture_, known);
    if (architecture.empty())
      return fail(ErrorCode::kUnsupported,
                  "[cuda] this build has no code of kernel {} for {} (it has: {})", source,
                  architecture_, known.empty() ? "none" : known);
    for (const EmbeddedCubin& cubin : embedded_cubins()) {
      if (cubin.source != source || cubin.architecture != architecture) continue;
      ModuleHandle* handle = nullptr;
      TERN_TRY(context_->check(context_->api().module_load(&handle, cubin.bytes.data()),
                               "cuModuleLoadData"));
      return handle;
    }
    return fail(ErrorCode::kInternal, "[cuda] the table of kernels changed");
  };
  return modules_.emplace(std::string(source), load()).first->second;
}

Result<void> Modules::check_params(ModuleHandle* module, const KernelInfo& kernel) {
  const std::string name = std::string(kernel.entry) + "_params_mark";
  Address address = 0;
  std::size_t bytes = 0;
  TERN_TRY(context_->check(context_->api().module_global(&address, &bytes, module, name.c_str()),
                           "cuModuleGetGlobal"));
  std::array<std::uint64_t, 2> mark{};
  if (bytes == sizeof mark) {
    TERN_ASSIGN(const Stream stream, Stream::make(context_));
    TERN_TRY(stream.copy_to_host(mark.data(), address, bytes));
    TERN_TRY(stream.synchronize());
  }
  if (mark[0] != kernel.params_bytes || mark[1] != kernel.params_layout)
    return fail(ErrorCode::kUnsupported,
                "[cuda] kernel {} takes parameters of {} bytes and layout {:x}, this build has {} "
                "bytes and {:x}",
                kernel.entry, mark[0], mark[1], kernel.params_bytes, kernel.params_layout);
  return {};
}

Result<FunctionHandle*> Modules::load(const KernelInfo& kernel) {
  TERN_TRY(context_->make_current());
  TERN_ASSIGN(ModuleHandle * module, this->module(kernel.source));
  const DriverApi& api = context_->api();
  FunctionHandle* function = nullptr;
  const std::string entry(kernel.entry);
  TERN_TRY(context_->check(api.module_function(&function, module, entry.c_str()),
                           "cuModuleGetFunction"));
  TERN_TRY(check_params(module, kernel));
  int threads = 0;
  TERN_TRY(context_->check(api.function_attribute(&threads, kMaxThreads, function),
                           "cuFuncGetAttribute"));
  if (threads < kernel.max_threads)
    return fail(ErrorCode::kUnsupported,
                "[cuda] kernel {} runs with {} threads a block at most, it needs {}", kernel.entry,
                threads, kernel.max_threads);
  return function;
}

Result<FunctionHandle*> Modules::resolve(const KernelInfo& kernel) {
  TERN_ASSIGN(const gpu::PipelinePtr pipeline, store_->resolve(kernel.source));
  for (const gpu::LoadedEntry& entry : pipeline->entries) {
    if (entry.name != kernel.entry) continue;
    pipelines_.push_back(pipeline);
    return static_cast<FunctionHandle*>(entry.handle);
  }
  return fail(ErrorCode::kInternal, "[cuda] the pipeline of {} lacks {}", kernel.source,
              kernel.entry);
}

Result<FunctionHandle*> Modules::function(KernelId id) {
  const std::lock_guard lock(mutex_);
  if (const auto found = functions_.find(id); found != functions_.end()) return found->second;
  return functions_.emplace(id, store_ ? resolve(info(id)) : load(info(id))).first->second;
}

Result<void> launch(const Stream& stream, FunctionHandle* function, const Launch& launch,
                    const Bases& bases, bool is_early) {
  if (launch.grid_x == 0 || launch.grid_y == 0) return {};
  LaunchAttribute attribute;
  attribute.id = kProgrammaticSerialization;
  attribute.value.programmatic_serialization_allowed = 1;
  LaunchConfig config;
  config.grid_x = launch.grid_x;
  config.grid_y = launch.grid_y;
  config.block_x = launch.threads;
  config.shared_bytes = launch.shared_bytes;
  config.stream = stream.handle();
  config.attributes = is_early ? &attribute : nullptr;
  config.attribute_count = is_early ? 1 : 0;
  Bases b = bases;
  std::array<std::byte, Launch::kParamsBytes> params = launch.params;
  void* parameters[] = {&b.weights, &b.arena, &b.block, params.data()};
  const Context& context = *stream.context();
  return context.check(context.api().launch(&config, function, parameters, nullptr),
                       "cuLaunchKernelEx");
}

}  // namespace tern::cuda
