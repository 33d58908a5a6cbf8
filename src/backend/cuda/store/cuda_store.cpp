#include "backend/cuda/store/cuda_store.h"

#include "backend/cuda/store/cuda_loader.h"
#include "backend/cuda/store/self_tests.h"
#include "backend/gpu/pipeline_store/driver_compiler.h"
#include "tern/version.h"

namespace tern::cuda {
namespace {

std::vector<std::shared_ptr<gpu::Compiler>> make_compilers(const std::shared_ptr<Context>& context,
                                                           const StoreSettings& settings,
                                                           const std::string& driver) {
  const auto linker = make_ptx_linker(context, driver);
  return {make_nvcc_compiler(settings.nvcc),
          make_nvrtc_compiler([search = settings.nvrtc] { return load_nvrtc(search); }, linker),
          gpu::make_driver_compiler(linker)};
}

}  // namespace

Result<StoreSettings> store_settings_from_environment() {
  StoreSettings settings;
  TERN_ASSIGN(settings.options.switches, gpu::parse_switches(gpu::read_switch_strings()));
  settings.options.tern = TERN_VERSION_STRING;
  settings.nvcc = read_nvcc_options();
  settings.nvrtc = read_nvrtc_search();
  cache::Options cache;
  cache.mode = settings.options.switches.cache;
  cache.tern = settings.options.tern;
  TERN_ASSIGN(cache.base, cache::choose_base(cache::read_location_strings()));
  TERN_ASSIGN(settings.options.cache, cache::Cache::open(std::move(cache)));
  return settings;
}

CudaStore::CudaStore(std::shared_ptr<Context> context, const std::string& product,
                     const std::string& architecture, int cores, const StoreSettings& settings)
    : context_(std::move(context)),
      cores_(cores),
      store_(describe_device(*context_, product, architecture), make_cuda_loader(context_),
             images_.table(),
             make_compilers(context_, settings,
                            describe_device(*context_, product, architecture).driver),
             settings.options) {}

Result<gpu::KernelDescription> CudaStore::describe(const KernelSource& source) const {
  TERN_ASSIGN(gpu::KernelDescription kernel, describe_kernel(source));
  kernel.self_test = self_test_of(source.stem, context_, cores_);
  return kernel;
}

Result<gpu::PipelinePtr> CudaStore::resolve(std::string_view stem) {
  for (const KernelSource& source : kKernelSources) {
    if (source.stem != stem) continue;
    TERN_ASSIGN(const gpu::KernelDescription kernel, describe(source));
    return store_.resolve(kernel);
  }
  return fail(ErrorCode::kInternal, "[cuda] there is no kernel {}", stem);
}

std::vector<Result<gpu::PipelinePtr>> CudaStore::resolve_all() {
  std::vector<gpu::KernelDescription> kernels;
  for (const KernelSource& source : kKernelSources) kernels.push_back(describe(source).value());
  return store_.resolve(kernels);
}

}  // namespace tern::cuda
