// How encoding, which works in nested loops, is left when its caller asks to stop.
#pragma once

#include "base/error.h"
#include "tern/cancel.h"

namespace tern::text {

// Throws Error(kCancelled); Tokenizer makes it a result.
inline void stop_if_requested(const CancelToken& cancel) {
  if (cancel.requested()) throw fail(ErrorCode::kCancelled, "the text is not encoded to its end");
}

}  // namespace tern::text
