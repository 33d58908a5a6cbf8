// Speed of every variant of block_product, on weights beyond the cache unless the name ends in
// _cached. Counters: bytes of weights per second, their share of a plain read in the same process,
// multiply-adds per second.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backend/cpu/kernels/bench_support.h"
#include "backend/cpu/kernels/block_product/test_matrix.h"
#include "reference/linear.h"

namespace tern::cpu {
namespace {

using bench::Residence;
using quant::Format;
using testing::Aligned;
using testing::TestMatrix;

// Copies of one matrix in turn.
struct Work {
  Work(const BlockProductVariant& variant, Format format, std::int64_t outputs, std::int64_t inputs,
       int rows, Residence residence)
      : x(bench::normal_values(static_cast<std::size_t>(rows * inputs), 5)),
        y(static_cast<std::size_t>(rows * outputs)),
        records(block_activation_row_bytes(inputs) * static_cast<std::uint64_t>(rows)),
        matrix(format, outputs, inputs),
        bytes(block_matrix_bytes(format, outputs, inputs)),
        rotation({matrix.matrix().data, bytes}, residence) {
    args.w = matrix.matrix();
    args.x = {inputs, records.data()};
    args.x_f32 = x.data();
    args.x_f32_row_stride = inputs;
    args.y = y.data();
    args.y_row_stride = outputs;
    variant.quantize(x.data(), inputs, args.x, 0, rows);
  }
  const BlockProductArgs& next() {
    args.w.data = rotation.next();
    return args;
  }
  std::vector<float> x, y;
  Aligned records;
  TestMatrix matrix;
  std::size_t bytes;
  bench::Rotation rotation;
  BlockProductArgs args;
};

// Integers: the bits of the portable variant, on the first and the last 16 outputs of every row.
bool has_portable_bits(const Work& work, int rows) {
  const BlockProductArgs& args = work.args;
  const std::int64_t blocks = args.w.outputs / kBlockRows;
  std::vector<float> expected(work.y.size());
  BlockProductArgs again = args;
  again.y = expected.data();
  for (const std::int64_t begin : {std::int64_t{0}, blocks - 2}) {
    block_product_variants().back().run(again, 0, rows, begin, begin + 2);
    for (int r = 0; r < rows; ++r) {
      const auto at = static_cast<std::size_t>(r * args.y_row_stride + begin * kBlockRows);
      if (std::memcmp(expected.data() + at, work.y.data() + at, 2 * kBlockRows * sizeof(float)) !=
          0)
        return false;
    }
  }
  return true;
}

// Floats: the bound of class F around the f64 sum, on the first and the last output of every row.
bool is_within_class_f(const Work& work, int rows) {
  const BlockProductArgs& args = work.args;
  const double bound = 4 * std::sqrt(static_cast<double>(args.w.inputs)) * 0x1p-24;
  for (const std::int64_t n : {std::int64_t{0}, args.w.outputs - 1}) {
    for (int r = 0; r < rows; ++r) {
      const reference::LinearResult e =
          reference::linear_row(args.w.format, work.matrix.file_row(n),
                                args.x_f32 + r * args.x_f32_row_stride, args.w.inputs);
      const double found = args.y[r * args.y_row_stride + n];
      if (!(std::fabs(found - e.value) <= bound * e.magnitude)) return false;
    }
  }
  return true;
}

void run(benchmark::State& state, const BlockProductVariant& variant, Format format, bool is_f32,
         Residence residence) {
  const std::int64_t outputs = state.range(0);
  const std::int64_t inputs = state.range(1);
  const int rows = static_cast<int>(state.range(2));
  Work work(variant, format, outputs, inputs, rows, residence);
  const BlockProductFn product = is_f32 ? variant.run_f32 : variant.run;
  for (auto step : state) {
    product(work.next(), 0, rows, 0, outputs / kBlockRows);
    benchmark::DoNotOptimize(work.y.data());
  }
  if (!(is_f32 ? is_within_class_f(work, rows) : has_portable_bits(work, rows)))
    state.SkipWithError("result differs from the reference");
  bench::report_bytes(state, static_cast<double>(work.bytes), work.rotation.ceiling_gbps());
  bench::report_products(state, static_cast<double>(outputs * inputs) * rows);
}

void quantize(benchmark::State& state, const BlockProductVariant& variant) {
  const std::int64_t inputs = state.range(0);
  const auto count = static_cast<std::size_t>(inputs);
  const std::vector<float> x = bench::normal_values(count, 5);
  const std::uint64_t bytes = block_activation_row_bytes(inputs);
  Aligned record(bytes, 0);
  Aligned expected(bytes, 0);
  for (auto step : state) {
    variant.quantize(x.data(), inputs, {inputs, record.data()}, 0, 1);
    benchmark::DoNotOptimize(record.data());
  }
  block_product_variants().back().quantize(x.data(), inputs, {inputs, expected.data()}, 0, 1);
  if (std::memcmp(record.data(), expected.data(), bytes) != 0)
    state.SkipWithError("result differs from the portable variant");
  bench::report_bytes(state, static_cast<double>(count * sizeof(float)), 0);
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
                                           run(s, variant, format, is_f32, Residence::kPastCache);
                                         });
        // SmolLM2-135M: gate and up, down, head; rows of decode and of prefill.
        bench->Args({3072, 576, 1})->Args({576, 1536, 1})->Args({49152, 576, 1});
        bench->Args({3072, 576, 4})->Args({3072, 576, 64});
      }
      benchmark::RegisterBenchmark((name + tag + "/i12_cached").c_str(),
                                   [&variant, format](benchmark::State& s) {
                                     run(s, variant, format, false, Residence::kCached);
                                   })
          ->Args({960, 576, 1})
          ->Args({960, 576, 32});
    }
    benchmark::RegisterBenchmark((name + "quantize_cached").c_str(),
                                 [&variant](benchmark::State& s) { quantize(s, variant); })
        ->Arg(576)
        ->Arg(1536);
  }
  return 0;
}

const int kRegistered = register_all();

}  // namespace
}  // namespace tern::cpu
