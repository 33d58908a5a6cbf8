// What work does with the public cancel token: ask it between steps, tiles and batches.
#pragma once

#include "base/error.h"
#include "tern/cancel.h"

namespace tern {

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets the flag of a token");

// The error of work that has been asked to stop.
[[nodiscard]] inline Result<void> check_cancelled(const CancelToken& cancel) {
  if (cancel.requested()) return Error(ErrorCode::kCancelled, "stopped on request");
  return {};
}

}  // namespace tern
