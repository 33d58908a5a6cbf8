// One pool of threads per engine: short parallel sections with dynamic chunks, spinning briefly
// before sleeping.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/float_environment.h"

namespace tern {

// The calling thread takes part as worker 0; threads() - 1 threads wait for it. Sections of several
// calling threads follow one another. A section must not start another one on the same pool
// (deadlock), and what it calls must not throw (std::terminate). Inside a section denormals are
// flushed to zero and rounding is to nearest; the caller's own floating-point state is back
// afterwards. Nothing is allocated per section.
class ThreadPool {
 public:
  struct Options {
    // How long a worker looks for work before it sleeps. Waking a sleeper takes 20 to 60 us, a
    // spinner below 1 us.
    std::chrono::microseconds spin{50};
    // Worker i runs on cpus[i] only; empty: the system decides. The calling thread (worker 0) is
    // never moved.
    std::vector<int> cpus;
  };

  // threads >= 1. Throws Error(kOutOfMemory) when the system gives no more threads.
  ThreadPool(int threads, const Options& options);
  explicit ThreadPool(int threads) : ThreadPool(threads, Options{}) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return threads_; }

  // Calls f(begin, end, worker) for pieces of [0, count) that cover it once, each of `chunk` (the
  // last one less) and starting at a multiple of chunk; returns when all are done. worker is 0 to
  // threads() - 1 and is one thread at a time. Which worker gets which piece is not determined, so
  // a result must not depend on it.
  template <class F>
  void parallel_for(std::int64_t count, std::int64_t chunk, F&& f) {
    using Function = std::remove_reference_t<F>;
    run(Task{.object = const_cast<void*>(static_cast<const void*>(std::addressof(f))),
             .invoke =
                 [](void* object, std::int64_t begin, std::int64_t end, int worker) noexcept {
                   (*static_cast<Function*>(object))(begin, end, worker);
                 },
             .count = count,
             .chunk = std::max<std::int64_t>(chunk, 1)});
  }

  // A chunk that gives every thread about `pieces` pieces of [0, count), as a multiple of
  // granularity.
  [[nodiscard]] std::int64_t chunk_for(std::int64_t count, std::int64_t granularity = 1,
                                       std::int64_t pieces = 4) const;

  // True in the child of a fork(): its threads do not exist there, and a section would wait for
  // ever. The engine asks before it starts work and answers with an error.
  [[nodiscard]] bool is_forked_copy() const;

 private:
  struct Task {
    void* object = nullptr;
    void (*invoke)(void*, std::int64_t, std::int64_t, int) noexcept = nullptr;
    std::int64_t count = 0;
    std::int64_t chunk = 1;
    std::uint32_t generation = 0;
  };
  // The gate's top bit says that the task may be joined, the others count the workers inside.
  static constexpr std::uint32_t kOpen = 0x80000000u;

  void run(Task task);
  void work(int worker);
  std::uint32_t wait_for_task(std::uint32_t last);
  bool join();
  void leave();
  void take_chunks(const Task& task, int worker);
  void wait_until_empty();
  void stop();

  const int threads_;
  const std::chrono::nanoseconds spin_;
  const long process_;
  std::mutex section_;  // held by the thread whose section runs
  Task task_;           // written while the gate is closed and empty, read by workers inside

  alignas(64) std::atomic<std::uint32_t> generation_{
      0};  // changes with every task: what workers watch
  alignas(64) std::atomic<std::uint32_t> gate_{0};
  alignas(64) std::atomic<std::int64_t> next_{0};  // first index that nobody has taken
  alignas(64) std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> is_caller_asleep_{0};
  std::atomic<bool> is_stopping_{false};
  std::vector<std::jthread> workers_;
};

}  // namespace tern
