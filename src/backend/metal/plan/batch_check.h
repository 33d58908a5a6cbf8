// Looks at every index of a batch block before a kernel follows it.
#pragma once

#include "backend/metal/plan/metal_plan.h"
#include "base/error.h"

namespace tern::metal {

// Errors: kInvalidArgument, with what was found and what was expected. pages: of the state pool.
[[nodiscard]] Result<void> check_batch(const MetalPlan& plan, int pages,
                                       const program::BatchBlock& batch);

}  // namespace tern::metal
