// Speed of every variant of dense_product on weights beyond the cache. Counters: bytes of weights
// per second, their share of a plain read in the same process, multiply-adds per second.
#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/kernels/bench_support.h"
#include "backend/cpu/kernels/dense_product/dense_product.h"
#include "base/half.h"
#include "quant/codec.h"
#include "reference/linear.h"

namespace tern::cpu {
namespace {

using quant::Format;

std::vector<std::byte> random_weights(Format format, std::int64_t outputs, std::int64_t inputs) {
  const std::vector<float> values =
      bench::normal_values(static_cast<std::size_t>(outputs * inputs), 81);
  std::vector<std::byte> bytes(static_cast<std::size_t>(
      quant::bytes_for(format, static_cast<std::uint64_t>(values.size()))));
  if (!quant::encode_row(format, values.data(), outputs * inputs, bytes.data()).ok()) bytes.clear();
  return bytes;
}

// The first and the last two outputs of every row within the bound of class F.
bool is_right(const DenseProductArgs& args, int rows, std::int64_t outputs) {
  const auto row_bytes = static_cast<std::int64_t>(
      quant::bytes_for(args.format, static_cast<std::uint64_t>(args.w_row_stride)));
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, outputs - 2, outputs - 1}) {
    for (int r = 0; r < rows; ++r) {
      const reference::LinearResult e = reference::linear_row(
          args.format, args.w + n * row_bytes, args.x + r * args.x_row_stride, args.inputs);
      const double bound = 4 * std::sqrt(static_cast<double>(args.inputs)) * 0x1p-24 * e.magnitude;
      if (!(std::fabs(double{args.y[r * args.y_row_stride + n]} - e.value) <= bound)) return false;
    }
  }
  return true;
}

void run(benchmark::State& state, const DenseProductVariant& variant, Format format) {
  const std::int64_t outputs = state.range(0);
  const std::int64_t inputs = state.range(1);
  const int rows = static_cast<int>(state.range(2));
  const std::vector<std::byte> weights = random_weights(format, outputs, inputs);
  if (weights.empty()) {
    state.SkipWithError("the weights cannot be encoded");
    return;
  }
  bench::Rotation rotation(weights, bench::Residence::kPastCache);
  const std::vector<float> x = bench::normal_values(static_cast<std::size_t>(rows * inputs), 82);
  std::vector<float> y(static_cast<std::size_t>(rows * outputs));
  DenseProductArgs args;
  args.format = format;
  args.w_row_stride = args.inputs = args.x_row_stride = inputs;
  args.x = x.data();
  args.y = y.data();
  args.y_row_stride = outputs;
  for (auto step : state) {
    args.w = rotation.next();
    variant.run(args, 0, rows, 0, outputs);
    benchmark::DoNotOptimize(y.data());
  }
  if (!is_right(args, rows, outputs)) state.SkipWithError("result differs from the reference");
  bench::report_bytes(state, static_cast<double>(weights.size()), rotation.ceiling_gbps());
  bench::report_products(state, static_cast<double>(outputs * inputs) * rows);
}

int register_all() {
  for (const DenseProductVariant& variant : dense_product_variants()) {
    if (!cpu_features().contains(variant.needs) || std::string(variant.name) == "reference")
      continue;
    for (const Format format : {Format::kF32, Format::kF16, Format::kBf16}) {
      const std::string name =
          std::string("dense_product/") + variant.name + "/" + std::string(quant::info(format).tag);
      benchmark::RegisterBenchmark(
          name.c_str(), [&variant, format](benchmark::State& s) { run(s, variant, format); })
          ->Args({2048, 2048, 1})
          ->Args({2048, 2048, 8})
          ->Args({2048, 2048, 128});
    }
  }
  return 0;
}

const int kRegistered = register_all();

}  // namespace
}  // namespace tern::cpu
