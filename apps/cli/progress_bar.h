// Progress of long work on stderr: a bar on a terminal, lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "cli/terminal.h"
#include "tern/progress.h"

namespace tern::cli {

enum class ProgressMode : std::uint8_t { kBar, kLines, kOff };

// "auto": a bar where stderr is a terminal with cursor movement, lines elsewhere.
[[nodiscard]] ProgressMode progress_mode(const std::string& choice, bool quiet,
                                         const Terminal& terminal);

// Work that ends within the delay leaves no trace. May be called from any thread.
class ProgressBar {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;
  using Write = std::function<void(std::string_view)>;

  // The plain form writes to stderr; tests pass a clock and a writer of their own.
  explicit ProgressBar(ProgressMode mode);
  ProgressBar(ProgressMode mode, std::size_t columns, Now now, Write write);
  // Ends the line of a bar that was left.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // A callback for the library; must not outlive the bar.
  [[nodiscard]] ProgressFn callback();
  void report(const Progress& progress);
  // Ends the line of a bar, so that other output may follow.
  void close();
  // What is finished disappears from a terminal: where the result itself is printed there.
  void leave_no_line() { leaves_line_ = false; }

 private:
  struct Work {
    std::string what;
    Clock::time_point start, last_shown;
    std::uint64_t first_done = 0;
    int last_quarter = -1;
    bool is_shown = false;
  };
  [[nodiscard]] std::string bar_line(const Progress& p, double seconds) const;
  [[nodiscard]] std::string figures(const Progress& p, double seconds) const;
  void report_lines(const Progress& p, Clock::time_point now, double seconds);
  void report_bar(const Progress& p, Clock::time_point now, double seconds);

  ProgressMode mode_;
  std::size_t columns_;  // 0: asks the terminal each time
  Now now_;
  Write write_;
  std::mutex mutex_;
  Work work_;
  bool bar_is_open_ = false;
  bool leaves_line_ = true;
};

}  // namespace tern::cli
