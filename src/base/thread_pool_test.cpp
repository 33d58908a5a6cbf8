// Sections cover their range once, on the right workers, with the right floating-point mode.
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <latch>
#include <numeric>
#include <set>

#include "base/allocation_counter_test.h"

#if defined(__linux__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace tern {
namespace {

using std::chrono::microseconds;

// Calls f(worker) on every worker: each waits until all of them have come.
template <class F>
void on_every_worker(ThreadPool& pool, F&& f) {
  std::latch all(pool.threads());
  pool.parallel_for(pool.threads(), 1, [&](std::int64_t, std::int64_t, int worker) {
    all.arrive_and_wait();
    f(worker);
  });
}

TEST(ThreadPool, CoversTheRangeOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::int64_t count : {0, 1, 2, 63, 64, 65, 1000}) {
      for (const std::int64_t chunk : {1, 7, 64, 2000}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
        pool.parallel_for(count, chunk, [&](std::int64_t begin, std::int64_t end, int worker) {
          EXPECT_EQ(begin % chunk, 0);
          EXPECT_EQ(end, std::min(begin + chunk, count));
          EXPECT_GE(worker, 0);
          EXPECT_LT(worker, threads);
          for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
        });
        for (const auto& n : seen) ASSERT_EQ(n, 1) << threads << " " << count << " " << chunk;
      }
    }
  }
}

TEST(ThreadPool, ResultsOfWorkersAreVisibleToTheCaller) {
  ThreadPool pool(4);
  std::vector<std::int64_t> values(10'000);
  for (int round = 1; round <= 200; ++round) {
    pool.parallel_for(10'000, 100, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] += i;
    });
  }
  // 200 * (0 + 1 + ... + 9,999)
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), std::int64_t{0}), 9'999'000'000);
}

TEST(ThreadPool, EveryWorkerComesWhenItIsNeededAlsoFromSleep) {
  for (const int spin : {0, 50}) {
    ThreadPool pool(4, {.spin = microseconds(spin), .cpus = {}});
    for (int round = 0; round < 100; ++round) {
      std::array<std::atomic<int>, 4> calls{};
      std::array<std::thread::id, 4> ids;
      on_every_worker(pool, [&](int worker) {
        ++calls[static_cast<std::size_t>(worker)];
        ids[static_cast<std::size_t>(worker)] = std::this_thread::get_id();
      });
      for (const auto& n : calls) ASSERT_EQ(n, 1);
      EXPECT_EQ(ids[0], std::this_thread::get_id());
      EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 4u);
      if (round % 10 == 0) std::this_thread::sleep_for(microseconds(300));
    }
  }
}

TEST(ThreadPool, ManyShortSectionsLoseNoPiece) {
  ThreadPool pool(3, {.spin = microseconds(5), .cpus = {}});
  std::atomic<std::int64_t> sum{0};
  for (int round = 0; round < 3000; ++round) {
    pool.parallel_for(round % 5, 1, [&](std::int64_t, std::int64_t, int) { ++sum; });
    if (round % 3 == 0) on_every_worker(pool, [&](int) { sum += 10; });
  }
  // 600 * (0 + 1 + 2 + 3 + 4) + 1,000 * 3 workers * 10
  EXPECT_EQ(sum, 6'000 + 30'000);
}

TEST(ThreadPool, AWorkerNumberIsOneThreadAtATime) {
  ThreadPool pool(3);
  std::array<std::atomic<bool>, 3> is_busy{};
  std::atomic<int> clashes{0};
  std::vector<std::jthread> callers;
  for (int c = 0; c < 2; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        pool.parallel_for(8, 1, [&](std::int64_t, std::int64_t, int worker) {
          auto& busy = is_busy[static_cast<std::size_t>(worker)];
          if (busy.exchange(true)) ++clashes;
          busy = false;
        });
      }
    });
  }
  callers.clear();
  EXPECT_EQ(clashes, 0);
}

TEST(ThreadPool, EveryWorkerTakesPartInLongWork) {
  ThreadPool pool(3);
  std::array<std::atomic<int>, 3> pieces{};
  pool.parallel_for(30, 1, [&](std::int64_t, std::int64_t, int worker) {
    ++pieces[static_cast<std::size_t>(worker)];
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  for (const auto& n : pieces) EXPECT_GT(n, 0);
}

TEST(ThreadPool, WaitsForAWorkerThatIsLate) {
  ThreadPool pool(2, {.spin = microseconds(0), .cpus = {}});
  std::atomic<int> done{0};
  pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t, int worker) {
    // The caller is through long before the worker: it must sleep (after 2 ms) and be woken.
    std::this_thread::sleep_for(std::chrono::milliseconds(worker == 0 ? 5 : 40));
    ++done;
  });
  EXPECT_EQ(done, 2);
}

TEST(ThreadPool, ASectionAllocatesNothing) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum{0};
  const std::array<std::int64_t, 16> large_capture{1};
  on_every_worker(pool, [](int) {});
  const long before = allocations_so_far();
  for (int round = 0; round < 100; ++round) {
    pool.parallel_for(10, 1, [&sum, large_capture](std::int64_t begin, std::int64_t, int) {
      sum += begin + large_capture[0];
    });
    on_every_worker(pool, [&sum](int worker) { sum += worker; });
  }
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_EQ(sum, 100 * (45 + 10 + 3));
}

// A subnormal times one: zero where denormals are flushed. volatile keeps the compiler out.
bool flushes_denormals() {
  volatile float tiny = std::bit_cast<float>(std::uint32_t{1000});
  volatile float one = 1.0F;
  const float product = tiny * one;
  return std::bit_cast<std::uint32_t>(product) == 0;
}

TEST(ThreadPool, FlushesDenormalsInsideSectionsOnly) {
  ASSERT_FALSE(flushes_denormals());
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::atomic<int> flushing{0};
    on_every_worker(pool, [&](int) { flushing += flushes_denormals() ? 1 : 0; });
#if defined(__x86_64__) || defined(__aarch64__)
    EXPECT_EQ(flushing, threads);
#endif
    flushing = 0;
    pool.parallel_for(
        1, 1, [&](std::int64_t, std::int64_t, int) { flushing += flushes_denormals() ? 1 : 0; });
#if defined(__x86_64__) || defined(__aarch64__)
    EXPECT_EQ(flushing, 1);
#endif
    EXPECT_FALSE(flushes_denormals());
  }
}

TEST(ThreadPool, LeavesTheRoundingModeOfTheHostAlone) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const auto before = KernelFloatMode::read();
  std::atomic<int> nearest{0};
  {
    ThreadPool pool(2);  // its threads start with the host's mode
    on_every_worker(pool, [&](int) {
      volatile float a = 1.0F;
      volatile float b = 0x1p-30F;  // upward: 1 + epsilon
      nearest += a + b == 1.0F ? 1 : 0;
    });
  }
  const auto after = KernelFloatMode::read();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(before, after);
  EXPECT_EQ(nearest, 2);
}

TEST(ThreadPool, ManyPoolsStartAndStop) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool a(3);
    ThreadPool b(2, {.spin = microseconds(0), .cpus = {0, 0}});
    std::atomic<int> n{0};
    on_every_worker(a, [&](int) { ++n; });
    on_every_worker(b, [&](int) { ++n; });
    EXPECT_EQ(n, 5);
  }
}

TEST(ThreadPool, ChunksGiveEveryThreadAFewPieces) {
  ThreadPool pool(2);
  EXPECT_EQ(pool.chunk_for(1024), 128);           // 1,024 / (2 * 4)
  EXPECT_EQ(pool.chunk_for(1024, 32, 2), 256);    // 1,024 / (2 * 2)
  EXPECT_EQ(pool.chunk_for(100, 32), 32);         // 4 units for 8 pieces
  EXPECT_EQ(pool.chunk_for(9 * 32 + 1, 32), 64);  // 10 units for 8 pieces
  EXPECT_EQ(pool.chunk_for(0, 8), 8);
}

#if defined(__linux__) && !defined(__SANITIZE_THREAD__)
TEST(ThreadPool, AForkedChildCanTellAndCanExit) {
  ThreadPool pool(2);
  EXPECT_FALSE(pool.is_forked_copy());
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_copy = false;
    {
      // The destructor of the child's copy must not wait for threads that do not exist.
      auto* copy = &pool;
      is_copy = copy->is_forked_copy();
      copy->~ThreadPool();
    }
    ::_exit(is_copy ? 7 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}
#endif

}  // namespace
}  // namespace tern
