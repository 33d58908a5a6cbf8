// What a CUDA device does for the pipeline store: modules from cubins, facts of entry points, PTX
// to cubins.
#pragma once

#include <memory>
#include <string>

#include "backend/cuda/core/stream.h"
#include "backend/gpu/pipeline_store/compiler.h"
#include "backend/gpu/pipeline_store/device_description.h"
#include "backend/gpu/pipeline_store/loader.h"

namespace tern::cuda {

[[nodiscard]] std::shared_ptr<gpu::Loader> make_cuda_loader(std::shared_ptr<Context> context);

// The driver's linker for the device of `context`. driver: version and build.
[[nodiscard]] std::shared_ptr<gpu::PtxLinker> make_ptx_linker(std::shared_ptr<Context> context,
                                                              std::string driver);

// product: "NVIDIA H200"; architecture: "sm_90".
[[nodiscard]] gpu::DeviceDescription describe_device(const Context& context,
                                                     const std::string& product,
                                                     const std::string& architecture);

// Targets whose cubins a device runs, best first: "sm_90a", "sm_90" for 9.0; older ones of the same
// major version follow.
[[nodiscard]] std::vector<std::string> accepted_targets(std::string_view architecture);

}  // namespace tern::cuda
