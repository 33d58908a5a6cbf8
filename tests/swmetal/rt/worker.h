// One OS thread of the executor, and what the kernel threads that it runs share.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "executor.h"
#include "fiber.h"
#include "sanitizers.h"

namespace swm {

// The first failure of a dispatch counts; all workers stop at it.
class Failure {
 public:
  void set(const Dispatch& dispatch, const std::string& what);
  explicit operator bool() const { return is_set_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::mutex mutex_;
  std::string text_;
  std::atomic<bool> is_set_{false};
};

// Two records used in turn: a fast lane may bring its value for the next collective while a slow
// one still reads the last.
struct SimdGroup {
  swm_exchange exchanges[2];
  int turn = 0;
};

// Addresses that stand for orderings towards the thread sanitizer.
struct SyncPoints {
  char start = 0, barrier = 0, variables = 0;
  char simd_barrier[SWM_LANES] = {};
};

struct GroupVariable {
  const void* key = nullptr;
  std::size_t bytes = 0;
  std::unique_ptr<char[]> memory;
};

// What one threadgroup needs: fibers, exchange records, threadgroup memory. Reused by the next.
struct Slot {
  explicit Slot(void (*entry)()) : fibers(entry) {}
  FiberSet fibers;
  std::vector<SimdGroup> simd_groups;
  swm_args args{};
  std::unique_ptr<char[]> group_memory[SWM_ARGUMENTS];
  std::vector<GroupVariable> variables;
  // A fresh one per threadgroup, so that two of them are not ordered by their barriers.
  std::unique_ptr<SyncPoints> sync;
  char finished = 0;
};

struct Worker {
  Worker(const Dispatch& d, const Options& o, Failure& f, unsigned index);
  [[nodiscard]] Slot& slot_for(std::uint64_t group) { return *slots[group % slots.size()]; }
  void fail(const std::string& what) { failure.set(dispatch, what); }
  void shuffle(unsigned* order, unsigned count);

  const Dispatch& dispatch;
  const Options& options;
  Failure& failure;
  HostStack host;
  // Two under the thread sanitizer: threadgroups that follow one another share nothing, so a race
  // between them is seen with one worker too.
  std::vector<std::unique_ptr<Slot>> slots;
  Slot* running = nullptr;   // the slot of the threadgroup that runs
  Fiber* current = nullptr;  // the fiber that runs
  std::mt19937_64 random;
  std::uint64_t switches = 0;
};

// The worker of the calling OS thread, for what kernels call.
Worker* this_worker();
void set_this_worker(Worker* worker);
extern const swm_api kApi;

// Runs the threadgroup at `position` to its end; false when the dispatch has failed.
bool run_group(Worker& worker, Slot& slot, swm_dim position, swm_dim groups);

}  // namespace swm
