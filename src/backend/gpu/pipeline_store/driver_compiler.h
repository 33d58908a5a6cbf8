// The last tier on CUDA: embedded PTX through the driver's linker.
#pragma once

#include <memory>

#include "backend/gpu/pipeline_store/compiler.h"

namespace tern::gpu {

// Errors of a job say which driver would be needed where the linker refuses the PTX.
[[nodiscard]] std::shared_ptr<Compiler> make_driver_compiler(std::shared_ptr<PtxLinker> linker);

}  // namespace tern::gpu
