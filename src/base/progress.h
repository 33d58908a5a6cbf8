// Limits the calls of a progress callback to ten a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tern/progress.h"

namespace tern {

// Counts one piece of work. The first call and the one of finish() always come through, others at
// most every 100 ms. For one thread; workers count into an atomic of their own, and the thread that
// waits for them calls update().
class ProgressMeter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kInterval = std::chrono::milliseconds(100);

  // `now` is replaced by tests. An empty fn makes a meter that does nothing.
  ProgressMeter(ProgressFn fn, std::string_view what, std::string_view unit, std::uint64_t total,
                std::function<Clock::time_point()> now = &Clock::now);

  void update(std::uint64_t done);
  void add(std::uint64_t more) { update(done_ + more); }
  // Reports what is done as final; only the first call counts.
  void finish();

 private:
  void report(bool finished);

  ProgressFn fn_;
  std::string what_;
  std::string unit_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  std::function<Clock::time_point()> now_;
  Clock::time_point next_{};
  bool is_started_ = false;
  bool is_finished_ = false;
};

}  // namespace tern
