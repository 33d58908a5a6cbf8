// GFLOP/s of vendor products on the CPU, beside a bare call of the same library in the same
// process.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backend/cpu/vendor/cpu_vendor_gemm.h"
#include "backend/vendor_gemm_test_problem.h"

namespace tern::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

std::shared_ptr<const backend::HostAllocation> random_matrix(std::int64_t n, Dtype dtype) {
  auto memory = backend::test::poisoned(1, static_cast<std::uint64_t>(n * n) * size_of(dtype));
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (std::int64_t i = 0; i < n * n; ++i)
    backend::test::store(dtype, memory->data() + static_cast<std::size_t>(i) * size_of(dtype),
                         uniform(random));
  return memory;
}

// D = A * B^T of n x n matrices through the bridge and, interleaved with it, as one bare call on
// one thread. The ratio's ceiling is the number of threads.
void product(benchmark::State& state, Dtype weights, bool is_plain) {
  const std::int64_t n = state.range(0);
  const auto threads = static_cast<int>(state.range(1));
  const auto library = OpenblasLibrary::load();
  if (!library.ok()) return state.SkipWithError(library.error().message().c_str());
  ThreadPool pool(threads);
  const auto vendor = make_cpu_vendor_gemm(is_plain ? nullptr : library.value(), pool, 1);
  const auto size = static_cast<std::uint64_t>(n);
  const auto matrix = [&](Dtype dtype) {
    backend::Operand operand;
    operand.memory = random_matrix(n, dtype);
    operand.rows = operand.cols = operand.row_stride = size;
    operand.dtype = dtype;
    return operand;
  };
  backend::GemmProblem problem;
  problem.op = "bench";
  problem.a = matrix(Dtype::kF32);
  problem.b = matrix(weights);
  problem.d = matrix(Dtype::kF32);
  problem.b.transposed = true;
  const backend::GemmPlan plan = vendor->plan(problem).value();
  const auto context = CpuEncodeContext::make(1, plan.workspace_bytes).value();

  const auto bare_b = random_matrix(n, Dtype::kF32);
  const auto bare_c = random_matrix(n, Dtype::kF32);
  const auto int_n = static_cast<int>(n);
  const SgemmArgs bare{.m = int_n,
                       .n = int_n,
                       .k = int_n,
                       .is_b_transposed = true,
                       .a = reinterpret_cast<const float*>(backend::test::data_of(problem.a)),
                       .a_row_stride = int_n,
                       .b = reinterpret_cast<const float*>(bare_b->data()),
                       .b_row_stride = int_n,
                       .c = reinterpret_cast<float*>(bare_c->data()),
                       .c_row_stride = int_n};
  std::vector<double> ours;
  std::vector<double> theirs;
  for (auto _ : state) {
    auto start = Clock::now();
    vendor->encode(plan, *context).value();
    ours.push_back(seconds(start));
    state.SetIterationTime(ours.back());
    start = Clock::now();
    library.value()->sgemm(bare);
    theirs.push_back(seconds(start));
  }
  if (weights == Dtype::kF32) {
    const auto* got = reinterpret_cast<const float*>(backend::test::data_of(problem.d));
    for (std::int64_t i = 0; i < n * n; i += 997) {
      if (!(std::abs(got[i] - bare.c[i]) < 1e-3f)) return state.SkipWithError("wrong result");
    }
  }
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(),
                     values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  const double flops =
      2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  const double mine = median(ours);
  const double bare_time = median(theirs);
  state.counters["GFLOP/s"] = flops / mine * 1e-9;
  state.counters["bare_1_thread"] = flops / bare_time * 1e-9;
  state.counters["ratio"] = bare_time / mine;
  // On a machine that does other work the best of each says more than the medians.
  state.counters["ratio_of_best"] =
      *std::min_element(theirs.begin(), theirs.end()) / *std::min_element(ours.begin(), ours.end());
  state.counters["best_GFLOP/s"] = flops / *std::min_element(ours.begin(), ours.end()) * 1e-9;
  state.SetLabel(library.value()->core() + ", " + plan.reason);
}

void f32_cached(benchmark::State& state) { product(state, Dtype::kF32, false); }
void f16_cached(benchmark::State& state) { product(state, Dtype::kF16, false); }
void bf16_cached(benchmark::State& state) { product(state, Dtype::kBf16, false); }
void plain_f32_cached(benchmark::State& state) { product(state, Dtype::kF32, true); }

void shapes(benchmark::internal::Benchmark* bench) {
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  for (const std::int64_t n : {256, 1024}) {
    bench->Args({n, 1});
    if (cores > 1) bench->Args({n, cores});
  }
  bench->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(0.5);
}
BENCHMARK(f32_cached)->Apply(shapes);
BENCHMARK(f16_cached)->Apply(shapes);
BENCHMARK(bf16_cached)->Apply(shapes);
BENCHMARK(plain_f32_cached)->Apply(shapes);

}  // namespace
}  // namespace tern::cpu
