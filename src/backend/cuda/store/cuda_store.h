// The pipeline store of a CUDA device, and the kernels that executables ask it for.
#pragma once

#include <memory>
#include <string>

#include "backend/cuda/compile/nvcc_compiler.h"
#include "backend/cuda/compile/nvrtc_compiler.h"
#include "backend/cuda/core/context.h"
#include "backend/cuda/store/kernel_sources.h"
#include "backend/gpu/pipeline_store/store.h"

namespace tern::cuda {

// Read once, when a device is opened. The defaults: embedded code alone, self-tested.
struct StoreSettings {
  gpu::StoreOptions options;
  NvccOptions nvcc;
  NvrtcSearch nvrtc;
};
// From the process's environment: switches, the cache folder, compilers. Errors: kUsage for a
// variable that says what is not known; kIo for an explicit cache folder that cannot be used.
[[nodiscard]] Result<StoreSettings> store_settings_from_environment();

// A store with what it stands on.
class CudaStore {
 public:
  // product: "NVIDIA H200". cores: for the geometry of self-tests.
  CudaStore(std::shared_ptr<Context> context, const std::string& product,
            const std::string& architecture, int cores, const StoreSettings& settings);

  // The pipeline of a source's kernels. Errors as gpu::Store::resolve.
  [[nodiscard]] Result<gpu::PipelinePtr> resolve(std::string_view stem);
  // All of them at once: compiles run side by side.
  [[nodiscard]] std::vector<Result<gpu::PipelinePtr>> resolve_all();
  [[nodiscard]] gpu::Store& store() { return store_; }

 private:
  [[nodiscard]] Result<gpu::KernelDescription> describe(const KernelSource& source) const;

  std::shared_ptr<Context> context_;
  int cores_;
  EmbeddedImages images_;
  gpu::Store store_;
};

}  // namespace tern::cuda
