// A logger is a value: a sink and a level. There is no global one; whoever logs was given one.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace tern {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

[[nodiscard]] constexpr std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "off";
}

// Gets one message without a line end. Called by whichever thread logs: a sink that is shared locks
// for itself. Text that a user or a file supplied goes through escape_for_message before it is
// logged.
using LogSink = std::function<void(LogLevel, std::string_view)>;

// Copies share the sink. A default-made logger says nothing and formats nothing.
class Logger {
 public:
  Logger() = default;
  explicit Logger(LogSink sink, LogLevel level = LogLevel::kInfo)
      : sink_(std::move(sink)), level_(sink_ ? level : LogLevel::kOff) {}

  [[nodiscard]] LogLevel level() const { return level_; }
  [[nodiscard]] bool enabled(LogLevel level) const {
    return level >= level_ && level != LogLevel::kOff;
  }

  template <class... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const {
    log(LogLevel::kDebug, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    log(LogLevel::kInfo, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) const {
    log(LogLevel::kWarning, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    log(LogLevel::kError, format, std::forward<Args>(args)...);
  }

 private:
  template <class... Args>
  void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) const {
    if (enabled(level)) sink_(level, fmt::format(format, std::forward<Args>(args)...));
  }

  LogSink sink_;
  LogLevel level_ = LogLevel::kOff;
};

}  // namespace tern
