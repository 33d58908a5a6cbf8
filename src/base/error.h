// Helpers around tern::Error: formatted errors, assertions, propagation.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "tern/error.h"

namespace tern {

// fail(ErrorCode::kInvalidFile, "tensor '{}' ends at {}, the file has {} bytes", ...)
template <class... Args>
[[nodiscard]] Error fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error(code, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace tern

// A programmer's error: no file and no request may reach it. Checked in dev, asan and tsan builds.
#if defined(TERN_ENABLE_ASSERTS)
#define TERN_ASSERT(condition) \
  ((condition) ? void(0) : ::tern::assertion_failed(#condition, __FILE__, __LINE__))
#else
#define TERN_ASSERT(condition) void(sizeof(!(condition)))
#endif

// Returns the error of a Result from the calling function, which returns a Result itself.
#define TERN_TRY(expression)                                      \
  do {                                                            \
    if (auto tern_try_result = (expression); !tern_try_result.ok()) \
      return tern_try_result.error();                             \
  } while (false)
