// Speed of every variant of attention, on caches that are rotated past the processor's: decode at a
// context (bytes of keys and values per second and their share of a plain read in the same
// process), prefill of a prompt (multiply-adds per second, those under the causal mask only).
#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/kernels/attention/test_cache.h"
#include "backend/cpu/kernels/bench_support.h"
#include "reference/attention.h"

namespace tern::cpu {
namespace {

using testing::AttentionRun;
using testing::TestCache;

struct Work {
  Work(int heads, int kv_heads, int head_dim, int first, int rows)
      : cache(KvDtype::kF16, KvDtype::kF16, kv_heads, head_dim, first + rows, 1),
        rotation(cache.memory(), bench::Residence::kPastCache),
        run(cache, heads, first, rows),
        q(bench::normal_values(static_cast<std::size_t>(rows * heads * head_dim), 2)),
        out(q.size()) {
    run.args.q = q.data();
    run.args.out = out.data();
    run.args.q_row_stride = run.args.out_row_stride = heads * head_dim;
  }
  // The same cache at another place.
  void next_cache() {
    KvView& kv = run.args.kv;
    const std::ptrdiff_t values = kv.v_base - kv.k_base;
    kv.k_base = rotation.next();
    kv.v_base = kv.k_base + values;
  }
  [[nodiscard]] bool head_is_right(std::size_t row, int head) const {
    const KvView& kv = run.args.kv;
    const int kv_head = head / (run.args.heads / kv.kv_heads);
    const std::size_t at = row * static_cast<std::size_t>(run.args.heads * kv.head_dim) +
                           static_cast<std::size_t>(head * kv.head_dim);
    std::vector<float> expected(static_cast<std::size_t>(kv.head_dim));
    reference::attention({kv.k_base, kv.page_stride_bytes, true, kv.kv_heads, kv.head_dim},
                         {kv.v_base, kv.page_stride_bytes, true, kv.kv_heads, kv.head_dim},
                         cache.pages(), kv_head, run.positions[row] + 1, run.args.scale,
                         q.data() + at, expected.data());
    for (std::size_t d = 0; d < expected.size(); ++d) {
      if (!(std::fabs(out[at + d] - expected[d]) < 1e-4F)) return false;
    }
    return true;
  }
  // The first and the last head of the first and the last row against the reference.
  [[nodiscard]] bool is_right() const {
    const std::size_t last = run.positions.size() - 1;
    return head_is_right(0, 0) && head_is_right(0, run.args.heads - 1) && head_is_right(last, 0) &&
           head_is_right(last, run.args.heads - 1);
  }
  TestCache cache;
  bench::Rotation rotation;
  AttentionRun run;
  std::vector<float> q, out;
};

// Bytes of keys and values of `positions` positions, halves.
double kv_bytes(int positions, int kv_heads, int head_dim) {
  return 2.0 * 2 * positions * kv_heads * head_dim;
}

void decode(benchmark::State& state, const AttentionVariant& variant) {
  const int heads = static_cast<int>(state.range(0));
  const int kv_heads = static_cast<int>(state.range(1));
  const int head_dim = static_cast<int>(state.range(2));
  const int context = static_cast<int>(state.range(3));
  Work work(heads, kv_heads, head_dim, context - 1, 1);
  const int splits = attention_splits(context);
  std::vector<float> partials(attention_partial_floats(1, heads, head_dim, splits) + 16);
  float* aligned = AttentionRun::align(partials.data());
  for (auto step : state) {
    work.next_cache();
    for (int split = 0; split < splits; ++split) {
      for (int h = 0; h < kv_heads; ++h)
        variant.split(work.run.args, 0, 1, h, split, splits, aligned, work.run.thread_scratch());
    }
    for (int h = 0; h < kv_heads; ++h) variant.merge(work.run.args, 0, 1, h, splits, aligned);
    benchmark::DoNotOptimize(work.out.data());
  }
  if (!work.is_right()) state.SkipWithError("result differs from the reference");
  bench::report_bytes(state, kv_bytes(context, kv_heads, head_dim), work.rotation.ceiling_gbps());
  bench::report_products(state, 2.0 * heads * head_dim * context);
}

void prefill(benchmark::State& state, const AttentionVariant& variant) {
  const int heads = static_cast<int>(state.range(0));
  const int kv_heads = static_cast<int>(state.range(1));
  const int head_dim = static_cast<int>(state.range(2));
  const int rows = static_cast<int>(state.range(3));
  Work work(heads, kv_heads, head_dim, 0, rows);
  for (auto step : state) {
    work.next_cache();
    work.run.prefill(variant, 0, rows);
    benchmark::DoNotOptimize(work.out.data());
  }
  if (!work.is_right()) state.SkipWithError("result differs from the reference");
  // Keys and values, q and the result once: the share is small where arithmetic is the limit.
  bench::report_bytes(
      state, kv_bytes(rows, kv_heads, head_dim) + 2.0 * sizeof(float) * rows * heads * head_dim,
      work.rotation.ceiling_gbps());
  bench::report_products(state, 2.0 * heads * head_dim * rows * (rows + 1) / 2);
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
