// The edge of the public interface: what is thrown inside comes out as an error.
#pragma once

#include <new>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace tern::runtime {

// Runs f, which gives a Result. An Error becomes that Result, memory that ran out kOutOfMemory
// ("<subject>: no memory is left <purpose>"). Anything else comes from a callback of the caller and
// goes on to the caller.
template <class F>
[[nodiscard]] auto guarded(std::string_view subject, std::string_view purpose, F&& f)
    -> decltype(f()) {
  try {
    return std::forward<F>(f)();
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, "{}: no memory is left {}", subject, purpose);
  }
}

}  // namespace tern::runtime
