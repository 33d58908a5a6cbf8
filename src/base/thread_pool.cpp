// Sections open a gate, hand out pieces by one counter, and wait for the workers inside.
#include "base/thread_pool.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include "base/signals_blocked.h"

namespace tern {
namespace {

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Calls done() again and again for about `time`; true as soon as it says so. Between looks it
// offers the processor to others: where two threads of the pool share one, spinning would keep the
// thread from running that it waits for.
template <class Done>
bool spin_until(std::chrono::nanoseconds time, Done done) {
  constexpr int kLooks = 32;  // 0.5 to 2 us
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    for (int i = 0; i < kLooks; ++i) {
      if (done()) return true;
      relax();
    }
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::yield();
  }
}

void name_and_pin(int worker, const std::vector<int>& cpus) {
#if defined(__linux__)
  ::pthread_setname_np(::pthread_self(), ("tern-" + std::to_string(worker)).c_str());
  const auto index = static_cast<std::size_t>(worker);
  if (index >= cpus.size() || cpus[index] < 0 || cpus[index] >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpus[index]), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);  // a refusal costs only speed
#else
  static_cast<void>(worker);
  static_cast<void>(cpus);
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads, const Options& options)
    : threads_(std::max(threads, 1)), spin_(options.spin), process_(::getpid()) {
  TERN_ASSERT(threads >= 1);
  const SignalsBlocked blocked;
  workers_.reserve(static_cast<std::size_t>(threads_ - 1));
  try {
    for (int worker = 1; worker < threads_; ++worker) {
      workers_.emplace_back([this, worker, cpus = options.cpus] {
        name_and_pin(worker, cpus);
        work(worker);
      });
    }
  } catch (const std::system_error& error) {
    const std::size_t started = workers_.size() + 1;
    stop();
    throw fail(ErrorCode::kOutOfMemory,
               "cannot start thread {} of {}: {}; use fewer with --threads", started + 1, threads_,
               error.code().message());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  if (is_forked_copy()) {  // nobody is there to join
    for (std::jthread& worker : workers_) worker.detach();
  } else {
    is_stopping_.store(true, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_seq_cst);
    generation_.notify_all();
  }
  workers_.clear();
}

bool ThreadPool::is_forked_copy() const { return ::getpid() != process_; }

std::int64_t ThreadPool::chunk_for(std::int64_t count, std::int64_t granularity,
                                   std::int64_t pieces) const {
  const std::int64_t parts = std::max<std::int64_t>(pieces, 1) * threads_;
  const std::int64_t units = (std::max<std::int64_t>(count, 1) + granularity - 1) / granularity;
  return (units + parts - 1) / parts * granularity;
}

void ThreadPool::run(Task task) {
  if (task.count <= 0) return;
  const std::lock_guard lock(section_);
  const KernelFloatMode mode;
  if (threads_ == 1 || task.count <= task.chunk) {
    for (std::int64_t at = 0; at < task.count; at += std::min(task.chunk, task.count - at)) {
      task.invoke(task.object, at, at + std::min(task.chunk, task.count - at), 0);
    }
    return;
  }

  // The gate is closed and nobody is inside, so the task can be written; opening it publishes it.
  task.generation = generation_.load(std::memory_order_relaxed) + 1;
  task_ = task;
  next_.store(0, std::memory_order_relaxed);
  gate_.store(kOpen, std::memory_order_release);
  // Sequentially consistent with the sleepers' own pair of accesses: either this thread sees the
  // sleeper, or the sleeper sees the new generation.
  generation_.store(task.generation, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();

  take_chunks(task, 0);
  // A worker that has not come in by now is not waited for: everything has been taken.
  gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
  wait_until_empty();
}

void ThreadPool::take_chunks(const Task& task, int worker) {
  for (;;) {
    const std::int64_t begin = next_.fetch_add(task.chunk, std::memory_order_relaxed);
    if (begin >= task.count) return;
    task.invoke(task.object, begin, begin + std::min(task.chunk, task.count - begin), worker);
  }
}

// The caller's wait for its workers, which are at work: being woken would cost more than most of
// what they still have to do, so it sleeps late.
void ThreadPool::wait_until_empty() {
  constexpr std::chrono::nanoseconds kPatience = std::chrono::milliseconds(2);
  if (spin_until(std::max(spin_, kPatience),
                 [&] { return gate_.load(std::memory_order_acquire) == 0; })) {
    return;
  }
  is_caller_asleep_.store(1, std::memory_order_seq_cst);
  for (;;) {
    const std::uint32_t inside = gate_.load(std::memory_order_seq_cst);
    if (inside == 0) break;
    gate_.wait(inside, std::memory_order_seq_cst);
  }
  is_caller_asleep_.store(0, std::memory_order_relaxed);
}

void ThreadPool::work(int worker) {
  KernelFloatMode::set_for_thread();
  std::uint32_t last = 0;
  for (;;) {
    const std::uint32_t seen = wait_for_task(last);
    if (is_stopping_.load(std::memory_order_relaxed)) return;
    if (!join()) {
      last = seen;
      continue;
    }
    const Task task = task_;
    take_chunks(task, worker);
    // Possibly a later one than was seen, which needs no second look.
    last = task.generation;
    leave();
  }
}

std::uint32_t ThreadPool::wait_for_task(std::uint32_t last) {
  std::uint32_t seen = last;
  const bool is_new = spin_until(spin_, [&] {
    seen = generation_.load(std::memory_order_acquire);
    return seen != last;
  });
  if (is_new) return seen;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while ((seen = generation_.load(std::memory_order_seq_cst)) == last) {
    generation_.wait(last, std::memory_order_seq_cst);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return seen;
}

bool ThreadPool::join() {
  std::uint32_t gate = gate_.load(std::memory_order_acquire);
  while ((gate & kOpen) != 0) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

void ThreadPool::leave() {
  const std::uint32_t before = gate_.fetch_sub(1, std::memory_order_seq_cst);
  const bool is_last = before == 1;  // and the gate is closed
  if (is_last && is_caller_asleep_.load(std::memory_order_seq_cst) != 0) gate_.notify_all();
}

}  // namespace tern
