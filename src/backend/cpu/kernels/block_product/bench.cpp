// Speed of every variant of block_product, on weights that do not fit the second-level cache unless
// the name ends in _cached. Counters: weights (times rows) per second, and bytes of weights per
// second.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernels/block_product/test_matrix.h"

namespace tern::cpu {
namespace {

using quant::Format;
using testing::Aligned;
using testing::TestMatrix;

std::vector<float> normal_values(std::size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(count);
  for (float& v : x) v = normal(random);
  return x;
}

// Several matrices in turn, so that weights come from beyond the cache.
struct Work {
  Work(const BlockProductVariant& variant, Format format, std::int64_t outputs, std::int64_t inputs,
       int rows, std::size_t resident_bytes)
      : x(normal_values(static_cast<std::size_t>(rows * inputs))),
        y(static_cast<std::size_t>(rows * outputs)),
        records(block_activation_row_bytes(inputs) * static_cast<std::uint64_t>(rows)) {
    const std::uint64_t bytes = block_matrix_bytes(format, outputs, inputs);
    const std::size_t count = resident_bytes / bytes + 1;
    for (std::size_t i = 0; i < count; ++i) {
      matrices.push_back(
          std::make_unique<TestMatrix>(format, outputs, inputs, static_cast<std::uint32_t>(i)));
    }
    args.x = {inputs, records.data()};
    args.x_f32 = x.data();
    args.x_f32_row_stride = inputs;
    args.y = y.data();
    args.y_row_stride = outputs;
    variant.quantize(x.data(), inputs, args.x, 0, rows);
  }
  const BlockProductArgs& next() {
    args.w = matrices[turn++ % matrices.size()]->matrix();
    return args;
  }
  std::vector<float> x, y;
  Aligned records;
  std::vector<std::unique_ptr<TestMatrix>> matrices;
  BlockProductArgs args;
  std::size_t turn = 0;
};

// The first outputs of a variant must be the portable ones.
bool is_right(const BlockProductVariant& variant, Work& work, int rows) {
  const BlockProductArgs args = work.next();
  variant.run(args, 0, rows, 0, 2);
  std::vector<float> expected(work.y.size());
  BlockProductArgs check = args;
  check.y = expected.data();
  block_product_variants().back().run(check, 0, rows, 0, 2);
  for (int r = 0; r < rows; ++r) {
    const auto at = static_cast<std::size_t>(r * args.y_row_stride);
    if (std::memcmp(expected.data() + at, work.y.data() + at, 16 * sizeof(float)) != 0)
      return false;
  }
  return true;
}

void run(benchmark::State& state, const BlockProductVariant& variant, Format format, bool is_f32,
         bool is_cached) {
  const std::int64_t outputs = state.range(0);
  const std::int64_t inputs = state.range(1);
  const int rows = static_cast<int>(state.range(2));
  Work work(variant, format, outputs, inputs, rows, is_cached ? 0 : std::size_t{48} << 20);
  if (!is_right(variant, work, rows)) {
    state.SkipWithError("result differs from the portable variant");
    return;
  }
  const BlockProductFn product = is_f32 ? variant.run_f32 : variant.run;
  for (auto step : state) {
    product(work.next(), 0, rows, 0, outputs / kBlockRows);
    benchmark::DoNotOptimize(work.y.data());
  }
  const double weights =
      static_cast<double>(outputs * inputs) * static_cast<double>(state.iterations());
  state.counters["MAC/s"] = benchmark::Counter(weights * rows, benchmark::Counter::kIsRate);
  state.counters["weight_bytes/s"] =
      benchmark::Counter(static_cast<double>(block_matrix_bytes(format, outputs, inputs)) *
                             static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void quantize(benchmark::State& state, const BlockProductVariant& variant) {
  const std::int64_t inputs = state.range(0);
  const std::vector<float> x = normal_values(static_cast<std::size_t>(inputs));
  Aligned record(block_activation_row_bytes(inputs));
  for (auto step : state) {
    variant.quantize(x.data(), inputs, {inputs, record.data()}, 0, 1);
    benchmark::DoNotOptimize(record.data());
  }
  state.counters["values/s"] =
      benchmark::Counter(static_cast<double>(inputs) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

int register_all() {
  for (const BlockProductVariant& variant : block_product_variants()) {
    if (!cpu_features().contains(variant.needs) || std::string(variant.name) == "reference")
      continue;
    const std::string name = std::string("block_product/") + variant.name + "/";
    for (const Format format : {Format::kQ4_0, Format::kQ4_1, Format::kQ8_0}) {
      const std::string tag(quant::info(format).tag);
      for (const bool is_f32 : {false, true}) {
        auto* bench =
            benchmark::RegisterBenchmark((name + tag + (is_f32 ? "/f32" : "/i12")).c_str(),
                                         [&variant, format, is_f32](benchmark::State& s) {
                                           run(s, variant, format, is_f32, false);
                                         });
        // SmolLM2-135M: gate and up, down, head; rows of decode and of prefill.
        bench->Args({3072, 576, 1})->Args({576, 1536, 1})->Args({49152, 576, 1});
        bench->Args({3072, 576, 4})->Args({3072, 576, 64});
      }
      benchmark::RegisterBenchmark(
          (name + tag + "/i12_cached").c_str(),
          [&variant, format](benchmark::State& s) { run(s, variant, format, false, true); })
          ->Args({960, 576, 1})
          ->Args({960, 576, 32});
    }
    benchmark::RegisterBenchmark((name + "quantize").c_str(),
                                 [&variant](benchmark::State& s) { quantize(s, variant); })
        ->Arg(576)
        ->Arg(1536);
  }
  return 0;
}

const int kRegistered = register_all();

}  // namespace
}  // namespace tern::cpu
