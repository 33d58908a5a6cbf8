#include "base/progress.h"

#include <utility>

namespace tern {

ProgressMeter::ProgressMeter(ProgressFn fn, std::string_view what, std::string_view unit,
                             std::uint64_t total, std::function<Clock::time_point()> now)
    : fn_(std::move(fn)), what_(what), unit_(unit), total_(total), now_(std::move(now)) {}

void ProgressMeter::update(std::uint64_t done) {
  done_ = done;
  if (!fn_ || is_finished_) return;
  const Clock::time_point now = now_();
  if (is_started_ && now < next_) return;
  is_started_ = true;
  next_ = now + kInterval;
  report(false);
}

void ProgressMeter::finish() {
  if (!fn_ || is_finished_) return;
  is_finished_ = true;
  report(true);
}

void ProgressMeter::report(bool finished) {
  Progress progress;
  progress.what = what_;
  progress.unit = unit_;
  progress.done = done_;
  progress.total = total_;
  progress.finished = finished;
  fn_(progress);
}

}  // namespace tern
