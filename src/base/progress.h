// Progress of long work, told to a callback at most ten times a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tern {

struct Progress {
  std::string_view what;    // "loading", "repacking weights": only valid during the call
  std::uint64_t done = 0;   // in the unit of total: bytes, layers, steps
  std::uint64_t total = 0;  // 0: not known
  bool finished = false;    // the last call of this piece of work
};

// What it throws ends the work and reaches the caller.
using ProgressFn = std::function<void(const Progress&)>;

// Counts one piece of work. The first call and the one of finish() always come through, others at
// most every 100 ms. For one thread; workers count into an atomic of their own, and the thread that
// waits for them calls update().
class ProgressMeter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kInterval = std::chrono::milliseconds(100);

  // `now` is replaced by tests. An empty fn makes a meter that does nothing.
  ProgressMeter(ProgressFn fn, std::string_view what, std::uint64_t total,
                std::function<Clock::time_point()> now = &Clock::now);

  void update(std::uint64_t done);
  void add(std::uint64_t more) { update(done_ + more); }
  // Reports what is done as final; only the first call counts.
  void finish();

 private:
  ProgressFn fn_;
  std::string what_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  std::function<Clock::time_point()> now_;
  Clock::time_point next_{};
  bool is_started_ = false;
  bool is_finished_ = false;
};

}  // namespace tern
