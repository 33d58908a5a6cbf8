// Errors of the program: one line "<path or flag>: <sentence>", and the exit code that follows.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "tern/error.h"

namespace tern::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitMemoryOrDisk = 3;
inline constexpr int kExitDevice = 4;
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitTerminated = 143;

[[nodiscard]] inline int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return kExitUsage;
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kDiskFull:
      return kExitMemoryOrDisk;
    case ErrorCode::kDevice:
      return kExitDevice;
    case ErrorCode::kCancelled:
      return kExitInterrupted;
    default:
      return kExitFailed;
  }
}

template <class... Args>
[[noreturn]] void fail(ErrorCode code, std::string_view subject, fmt::format_string<Args...> format,
                       Args&&... args) {
  throw Error(code, std::string(subject) + ": " + fmt::format(format, std::forward<Args>(args)...));
}

// The error of the library, with its subject in front unless it is there already.
[[nodiscard]] inline Error about(std::string_view subject, const Error& error) {
  const std::string prefix = std::string(subject) + ": ";
  if (error.message().rfind(prefix, 0) == 0) return error;
  return Error(error.code(), prefix + error.message());
}

// The value, or the error with the subject in front.
template <class T>
T take(std::string_view subject, Result<T> result) {
  if (!result.ok()) throw about(subject, result.error());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

}  // namespace tern::cli
