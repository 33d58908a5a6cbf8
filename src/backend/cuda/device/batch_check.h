// Looks at every index of a batch block before a kernel follows it.
#pragma once

#include "backend/cuda/plan/cuda_plan.h"
#include "base/error.h"

namespace tern::cuda {

// Errors: kInvalidArgument, with what was found and what was expected. pages: of the state pool.
[[nodiscard]] Result<void> check_batch(const CudaPlan& plan, int pages,
                                       const program::BatchBlock& batch);

}  // namespace tern::cuda
