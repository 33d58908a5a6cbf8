// Speed of every variant of rms_norm: rows of a prompt beyond the cache, and the single row of a
// decode step, which is in it. Counters: bytes read and written per second, their share of a plain
// read in the same process.
#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/kernels/bench_support.h"
#include "backend/cpu/kernels/rms_norm/rms_norm.h"
#include "reference/rms_norm.h"

namespace tern::cpu {
namespace {

constexpr float kEps = 1e-6F;

// The first and the last run within the bound of class F.
bool is_right(const RmsNormArgs& args, int rows) {
  std::vector<float> expected(static_cast<std::size_t>(args.width));
  const std::int64_t last =
      (rows - 1) * args.x_row_stride + static_cast<std::int64_t>(args.heads - 1) * args.width;
  const double bound = 4 * std::sqrt(static_cast<double>(args.width)) * 0x1p-24;
  for (const std::int64_t at : {std::int64_t{0}, last}) {
    reference::rms_norm(args.x + at, args.weight, args.width, args.eps, expected.data());
    for (int i = 0; i < args.width; ++i) {
      const double e = expected[static_cast<std::size_t>(i)];
      if (!(std::fabs(double{args.y[at + i]} - e) <= bound * std::fabs(e))) return false;
    }
  }
  return true;
}

void run(benchmark::State& state, const RmsNormVariant& variant, bench::Residence residence) {
  const int heads = static_cast<int>(state.range(0));
  const int width = static_cast<int>(state.range(1));
  const int rows = static_cast<int>(state.range(2));
  const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(heads * width);
  const std::vector<float> weight = bench::normal_values(static_cast<std::size_t>(width), 83);
  std::vector<float> x_and_y = bench::normal_values(count, 84);
  x_and_y.resize(2 * count);
  bench::Rotation rotation(bench::bytes_of(x_and_y), residence);
  RmsNormArgs args;
  args.weight = weight.data();
  args.heads = heads;
  args.width = width;
  args.eps = kEps;
  args.x_row_stride = args.y_row_stride = heads * width;
  for (auto step : state) {
    auto* x = reinterpret_cast<float*>(rotation.next());
    args.x = x;
    args.y = x + count;
    variant.run(args, 0, rows);
    benchmark::DoNotOptimize(args.y);
    benchmark::ClobberMemory();
  }
  if (!is_right(args, rows)) state.SkipWithError("result differs from the reference");
  bench::report_bytes(state, 2.0 * sizeof(float) * static_cast<double>(count),
                      rotation.ceiling_gbps());
}

int register_all() {
  using bench::Residence;
  for (const RmsNormVariant& variant : rms_norm_variants()) {
    if (!cpu_features().contains(variant.needs) || std::string(variant.name) == "reference")
      continue;
    const std::string name = std::string("rms_norm/") + variant.name;
    // heads, width, rows: the layer norm and the QK-norm of Qwen3-1.7B
    benchmark::RegisterBenchmark(
        (name + "/prompt").c_str(),
        [&variant](benchmark::State& s) { run(s, variant, Residence::kPastCache); })
        ->Args({1, 2048, 512})
        ->Args({16, 128, 512});
    benchmark::RegisterBenchmark(
        (name + "/step_cached").c_str(),
        [&variant](benchmark::State& s) { run(s, variant, Residence::kCached); })
        ->Args({1, 2048, 1})
        ->Args({16, 128, 1});
  }
  return 0;
}

const int kRegistered = register_all();

}  // namespace
}  // namespace tern::cpu
