// Runs a function on a stack of its own, so that bounded recursion does not depend on the caller's
// thread.
#pragma once

#include <cstddef>
#include <functional>

namespace tern {

// Calls `body` on a new thread with a stack of `bytes` and returns when it is done; what it throws
// is thrown here. Memory is used only as far as the stack grows. Throws Error (kOutOfMemory) where
// no thread can be made.
void run_on_own_stack(std::size_t bytes, const std::function<void()>& body);

}  // namespace tern
