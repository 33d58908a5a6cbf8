// State of the emulator that stands beside the objects: options, injected faults, counts, what the
// device answers. One per process, as the system that it stands for.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "../rt/options.h"
#include "swmetal/swmetal.h"

namespace swm {

struct DeviceAnswers {
  std::string name = "Software Metal (test only)";
  std::string architecture = "swmetal";
  int apple_family = 9;
  bool has_unified_memory = true;
  std::uint64_t working_set = 8ull << 30;
  std::uint64_t max_buffer = 4ull << 30;
};

class Control {
 public:
  Control() { reset(); }
  void reset();

  [[nodiscard]] Options options() const;
  void set_options(const Options& options);
  [[nodiscard]] DeviceAnswers device() const;
  void set_device(const DeviceAnswers& answers);

  // Counts the event; true: this one is to fail.
  bool fails(swm_event event);
  void count(swm_event event) { counts_[event].fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t counted(swm_event event) const {
    return counts_[event].load(std::memory_order_relaxed);
  }
  void fail_nth(swm_event event, std::uint64_t n);
  [[nodiscard]] bool too_large(std::uint64_t bytes) const;
  void set_allocation_limit(std::uint64_t bytes) { allocation_limit_ = bytes; }

  [[nodiscard]] bool is_absent() const { return is_absent_; }
  void set_absent(bool absent) { is_absent_ = absent; }
  [[nodiscard]] bool is_lost() const { return is_lost_; }
  void lose() { is_lost_ = true; }

  void set_commit_error(long code, const std::string& text);
  [[nodiscard]] long commit_error(std::string& text) const;

  std::atomic<std::uint64_t> allocated{0};  // bytes of all buffers

 private:
  void read_environment();

  mutable std::mutex mutex_;  // of what is not atomic
  Options options_;
  DeviceAnswers device_;
  long commit_code_ = 1;
  std::string commit_text_;
  std::atomic<std::uint64_t> counts_[SWM_EVENTS] = {};
  std::atomic<std::uint64_t> fail_at_[SWM_EVENTS] = {};  // the count that fails
  std::atomic<std::uint64_t> allocation_limit_{0};
  std::atomic<bool> is_absent_{false}, is_lost_{false};
};

Control& control();

}  // namespace swm
