// What a parallel section costs beside its work.
#include <benchmark/benchmark.h>

#include "base/thread_pool.h"

namespace tern {
namespace {

// One empty piece per thread; workers are still spinning from the section before.
void section_while_workers_spin(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  ThreadPool pool(threads);
  for (auto _ : state) {
    pool.parallel_for(
        threads, 1, [](std::int64_t begin, std::int64_t, int) { benchmark::DoNotOptimize(begin); });
  }
}
BENCHMARK(section_while_workers_spin)->Arg(1)->Arg(2)->UseRealTime();

// Workers that sleep at once: every section wakes them.
void section_while_workers_sleep(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  ThreadPool pool(threads, {.spin = std::chrono::microseconds(0), .cpus = {}});
  for (auto _ : state) {
    pool.parallel_for(
        threads, 1, [](std::int64_t begin, std::int64_t, int) { benchmark::DoNotOptimize(begin); });
  }
}
BENCHMARK(section_while_workers_sleep)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace tern
