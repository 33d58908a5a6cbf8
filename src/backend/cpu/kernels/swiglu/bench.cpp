// Speed of every variant of swiglu on a joined projection: rows of a prompt beyond the cache, and
// the single row of a decode step, which is in it. Counters: bytes read and written per second,
// their share of a plain read in the same process.
#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/kernels/bench_support.h"
#include "backend/cpu/kernels/swiglu/swiglu.h"
#include "reference/swiglu.h"

namespace tern::cpu {
namespace {

// The first and the last row: 4 ulp of silu (class T), and the rounding of the product.
bool is_right(const SwigluArgs& args, int rows) {
  for (const int r : {0, rows - 1}) {
    for (int i = 0; i < args.width; ++i) {
      const double e = reference::swiglu(args.gate[r * args.gate_row_stride + i],
                                         args.up[r * args.up_row_stride + i]);
      const double found = args.y[r * args.y_row_stride + i];
      if (!(std::fabs(found - e) <= 5 * 0x1p-23 * std::fabs(e))) return false;
    }
  }
  return true;
}

void run(benchmark::State& state, const SwigluVariant& variant, bench::Residence residence) {
  const int width = static_cast<int>(state.range(0));
  const int rows = static_cast<int>(state.range(1));
  const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
  // [rows][gate | up], then [rows] of the result.
  std::vector<float> values = bench::normal_values(2 * count, 85);
  values.resize(3 * count);
  bench::Rotation rotation(bench::bytes_of(values), residence);
  SwigluArgs args;
  args.gate_row_stride = args.up_row_stride = 2 * std::int64_t{width};
  args.y_row_stride = args.width = width;
  for (auto step : state) {
    auto* joined = reinterpret_cast<float*>(rotation.next());
    args.gate = joined;
    args.up = joined + width;
    args.y = joined + 2 * count;
    variant.run(args, 0, rows, 0, width);
    benchmark::DoNotOptimize(args.y);
    benchmark::ClobberMemory();
  }
  if (!is_right(args, rows)) state.SkipWithError("result differs from the reference");
  bench::report_bytes(state, 3.0 * sizeof(float) * static_cast<double>(count),
                      rotation.ceiling_gbps());
}

int register_all() {
  using bench::Residence;
  for (const SwigluVariant& variant : swiglu_variants()) {
    if (!cpu_features().contains(variant.needs) || std::string(variant.name) == "reference")
      continue;
    const std::string name = std::string("swiglu/") + variant.name;
    benchmark::RegisterBenchmark((name + "/prompt").c_str(), [&variant](benchmark::State& s) {
      run(s, variant, Residence::kPastCache);
    })->Args({6144, 512});
    benchmark::RegisterBenchmark((name + "/step_cached").c_str(), [&variant](benchmark::State& s) {
      run(s, variant, Residence::kCached);
    })->Args({6144, 1});
  }
  return 0;
}

const int kRegistered = register_all();

}  // namespace
}  // namespace tern::cpu
