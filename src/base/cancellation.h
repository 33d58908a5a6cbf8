// The public cancel token, for work that asks it between steps, tiles and batches.
#pragma once

#include "tern/cancel.h"

namespace tern {

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets the flag of a token");

}  // namespace tern
