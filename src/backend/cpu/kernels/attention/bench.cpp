// Speed of every variant of attention: decode at a context (bytes of keys and values per second),
// prefill of a prompt (multiply-adds per second, those under the causal mask only).
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/kernels/attention/test_cache.h"
#include "reference/attention.h"

namespace tern::cpu {
namespace {

using testing::AttentionRun;
using testing::TestCache;

struct Work {
  Work(int heads, int kv_heads, int head_dim, int first, int rows)
      : cache(KvDtype::kF16, KvDtype::kF16, kv_heads, head_dim, first + rows, 1),
        run(cache, heads, first, rows),
        q(static_cast<std::size_t>(rows * heads * head_dim)),
        out(q.size()) {
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = std::sin(static_cast<float>(i));
    run.args.q = q.data();
    run.args.out = out.data();
    run.args.q_row_stride = run.args.out_row_stride = heads * head_dim;
  }
  // The last row's first head against the reference.
  [[nodiscard]] bool is_right() const {
    const KvView& kv = run.args.kv;
    const std::size_t row = run.positions.size() - 1;
    const std::size_t at = row * static_cast<std::size_t>(run.args.heads * kv.head_dim);
    std::vector<float> expected(static_cast<std::size_t>(kv.head_dim));
    reference::attention({kv.k_base, kv.page_stride_bytes, true, kv.kv_heads, kv.head_dim},
                         {kv.v_base, kv.page_stride_bytes, true, kv.kv_heads, kv.head_dim},
                         cache.pages(), 0, run.positions[row] + 1, run.args.scale, q.data() + at,
                         expected.data());
    for (std::size_t d = 0; d < expected.size(); ++d) {
      if (!(std::fabs(out[at + d] - expected[d]) < 1e-4F)) return false;
    }
    return true;
  }
  TestCache cache;
  AttentionRun run;
  std::vector<float> q, out;
};

void decode(benchmark::State& state, const AttentionVariant& variant) {
  const int heads = static_cast<int>(state.range(0));
  const int kv_heads = static_cast<int>(state.range(1));
  const int head_dim = static_cast<int>(state.range(2));
  const int context = static_cast<int>(state.range(3));
  Work work(heads, kv_heads, head_dim, context - 1, 1);
  for (auto step : state) {
    work.run.decode(variant, 0, 1);
    benchmark::DoNotOptimize(work.out.data());
  }
  if (!work.is_right()) state.SkipWithError("result differs from the reference");
  const double bytes = 2.0 * 2 * context * kv_heads * head_dim;
  state.counters["kv_bytes/s"] = benchmark::Counter(bytes * static_cast<double>(state.iterations()),
                                                    benchmark::Counter::kIsRate);
}

void prefill(benchmark::State& state, const AttentionVariant& variant) {
  const int heads = static_cast<int>(state.range(0));
  const int kv_heads = static_cast<int>(state.range(1));
  const int head_dim = static_cast<int>(state.range(2));
  const int rows = static_cast<int>(state.range(3));
  Work work(heads, kv_heads, head_dim, 0, rows);
  for (auto step : state) {
    work.run.prefill(variant, 0, rows);
    benchmark::DoNotOptimize(work.out.data());
  }
  if (!work.is_right()) state.SkipWithError("result differs from the reference");
  const double macs = 2.0 * heads * head_dim * rows * (rows + 1) / 2;
  state.counters["MAC/s"] = benchmark::Counter(macs * static_cast<double>(state.iterations()),
                                               benchmark::Counter::kIsRate);
}

int register_all() {
  for (const AttentionVariant& variant : attention_variants()) {
    if (!cpu_features().contains(variant.needs) || std::string(variant.name) == "reference")
      continue;
    const std::string name = std::string("attention/") + variant.name;
    // heads, key heads, head width, positions: Qwen3-1.7B, SmolLM2-135M
    benchmark::RegisterBenchmark((name + "/decode").c_str(),
                                 [&variant](benchmark::State& s) { decode(s, variant); })
        ->Args({16, 8, 128, 1024})
        ->Args({16, 8, 128, 4096})
        ->Args({16, 8, 128, 16384})
        ->Args({9, 3, 64, 1024});
    benchmark::RegisterBenchmark((name + "/prefill").c_str(),
                                 [&variant](benchmark::State& s) { prefill(s, variant); })
        ->Args({16, 8, 128, 512})
        ->Args({16, 8, 128, 2048})
        ->Args({9, 3, 64, 512});
  }
  return 0;
}

const int kRegistered = register_all();

}  // namespace
}  // namespace tern::cpu
