// Known-answer tests of the CUDA kernels: small, ragged, random, guarded, against the reference.
#pragma once

#include <memory>
#include <string_view>

#include "backend/cuda/core/context.h"
#include "backend/gpu/pipeline_store/kernel.h"

namespace tern::cuda {

// The test of the kernels of a source; empty for those that have none (read_bytes).
[[nodiscard]] gpu::SelfTest self_test_of(std::string_view stem, std::shared_ptr<Context> context,
                                         int cores);

}  // namespace tern::cuda
