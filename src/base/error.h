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
#define TERN_TRY(expression)                                          \
  do {                                                                \
    if (auto&& tern_try_result = (expression); !tern_try_result.ok()) \
      return tern_try_result.error();                                 \
  } while (false)

// The same, and otherwise assigns the value: TERN_ASSIGN(const std::uint32_t version,
// reader.u32()). A declaration stays in the calling scope, so this is never the only statement of
// an `if`.
#define TERN_ASSIGN(declaration, expression) \
  TERN_ASSIGN_IMPL(TERN_CONCAT(tern_assign_result_, __LINE__), declaration, expression)
#define TERN_ASSIGN_IMPL(result, declaration, expression) \
  auto result = (expression);                             \
  if (!result.ok()) return result.error();                \
  declaration = std::move(result).value()
#define TERN_CONCAT(a, b) TERN_CONCAT_IMPL(a, b)
#define TERN_CONCAT_IMPL(a, b) a##b
