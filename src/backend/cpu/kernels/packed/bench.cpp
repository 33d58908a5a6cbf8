// Speed of the packed products: all variants of this machine interleaved, beside the read bandwidth
// of the same run.
//
// Names: packed/<what>/<format>/<outputs>x<inputs>/<rows>. `_cached` stays in the cache; the others
// rotate buffers past it. Counters: <variant>_G = 1e9 multiply-adds (weights for one row) per
// second, median of the rounds, one thread; <variant>_GBs = packed bytes read per second; read_GBs
// = a plain read of the same buffers, share = GBs / read_GBs.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernels/bench_support.h"
#include "backend/cpu/kernels/packed/packed.h"
#include "base/half.h"
#include "quant/codec.h"
#include "quant/format.h"
#include "reference/quantize_i12.h"

namespace tern::cpu {
namespace {

using bench::aligned;
using bench::AlignedBytes;
using bench::Clock;
using bench::median;
using bench::seconds_since;

constexpr int kRounds = 101;

struct Case {
  quant::Format format;
  std::int64_t outputs;
  std::int64_t inputs;
  std::int64_t rows;
  bool cached;
  bool floats;
  bool code3 = false;
};

std::vector<std::byte> random_rows(const Case& c) {
  const quant::FormatInfo& f = quant::info(c.format);
  std::vector<std::byte> bytes(quant::bytes_for(
      c.format, static_cast<std::uint64_t>(c.outputs) * static_cast<std::uint64_t>(c.inputs)));
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const std::uint64_t v = random();
    std::memcpy(&bytes[i], &v, 8);
  }
  const bool last = c.format == quant::Format::kT1G128 || c.format == quant::Format::kT1G256 ||
                    c.format == quant::Format::kT2G256;
  for (std::size_t b = 0; b < bytes.size(); b += static_cast<std::size_t>(f.block_bytes)) {
    const std::size_t scale = b + (last ? static_cast<std::size_t>(f.block_bytes) - 2 : 0);
    if (!c.code3 && c.format != quant::Format::kQ1G128) {
      for (std::size_t i = b; i < b + static_cast<std::size_t>(f.block_bytes); ++i) {
        const auto v = static_cast<unsigned>(bytes[i]);
        bytes[i] = static_cast<std::byte>(v & ~((v & (v >> 1) & 0x55) << 1));
      }
    }
    const std::uint16_t half = float_to_half(0.01f + 0.001f * static_cast<float>(random() % 16));
    std::memcpy(&bytes[scale], &half, 2);
  }
  return bytes;
}

// One variant with copies of the same packed matrix.
struct Contender {
  const PackedVariant* variant;
  PackedLayout layout;
  std::size_t matrix_bytes;
  std::size_t copies;
  AlignedBytes weights;
  ActivationLayout activations;
  AlignedBytes records;
  std::vector<float> y;
  std::vector<double> seconds;

  Contender(const PackedVariant& v, const Case& c, const std::vector<std::byte>& source,
            const std::vector<float>& x)
      : variant(&v),
        layout(packed_layout(c.format, c.outputs, c.inputs, c.code3, v.tiling)),
        matrix_bytes(layout.bytes()),
        copies(c.cached ? 1
                        : std::max<std::size_t>(2, bench::past_cache_bytes() / layout.bytes() + 1)),
        weights(aligned(matrix_bytes * copies)),
        activations(activation_layout(c.inputs, v.tiling, needs(layout))),
        records(aligned(static_cast<std::size_t>(activations.record_bytes * c.rows))),
        y(static_cast<std::size_t>(c.outputs * c.rows)) {
    const PackedSource rows{c.format, c.inputs, source.data(),
                            static_cast<std::int64_t>(source.size()) / c.outputs};
    repack(layout, rows, 0, c.outputs, weights.get(), 0);
    for (std::size_t i = 1; i < copies; ++i) {
      std::memcpy(weights.get() + i * matrix_bytes, weights.get(), matrix_bytes);
    }
    v.quantize({x.data(), c.inputs, 0, c.rows, activations.view(records.get())});
  }

  PackedMatmulArgs arguments(const Case& c, const float* x, std::size_t copy, std::byte* scratch) {
    PackedMatmulArgs args{};
    args.weights = layout.view(weights.get() + copy % copies * matrix_bytes);
    args.records = activations.view(records.get());
    args.x = x;
    args.x_stride = c.inputs;
    args.rows = c.rows;
    args.y = y.data();
    args.y_stride = c.outputs;
    args.block_end = layout.row_blocks();
    args.scratch = scratch;
    return args;
  }
  // The ceiling, measured on the part-th part of the copies, another one each time.
  double read_gbps(std::size_t part) const {
    const std::size_t all = copies * matrix_bytes / 64 * 64;
    const std::size_t size = std::min(all, std::size_t{128} << 20);
    const std::size_t begin = part * size % (all - size + 1) / 64 * 64;
    return bench::read_ceiling_gbps({weights.get() + begin, size});
  }
  void run(const Case& c, const float* x, std::size_t copy, std::byte* scratch) {
    const PackedMatmulArgs args = arguments(c, x, copy, scratch);
    c.floats ? variant->matmul_f32(args) : variant->matmul(args);
  }
};

// The first and the last block of a contender against the reference on the same packed matrix and
// records: equal bits for integers, 1e-4 of the value for floats, whose order of additions is free.
bool is_right(const Case& c, Contender& contender, const float* x, std::byte* scratch) {
  const std::int64_t blocks = contender.layout.row_blocks();
  std::vector<float> expected(contender.y.size());
  PackedMatmulArgs args = contender.arguments(c, x, 0, scratch);
  args.y = expected.data();
  const PackedVariant& reference = packed_variants().back();
  for (const std::int64_t block : {std::int64_t{0}, blocks - 1}) {
    args.block_begin = block;
    args.block_end = block + 1;
    c.floats ? reference.matmul_f32(args) : reference.matmul(args);
    for (std::int64_t r = 0; r < c.rows; ++r) {
      for (std::int64_t n = block * kPackedBlockRows;
           n < std::min(c.outputs, (block + 1) * kPackedBlockRows); ++n) {
        const auto at = static_cast<std::size_t>(r * c.outputs + n);
        const float tolerance = c.floats ? 1e-4f * (1.0f + std::abs(expected[at])) : 0.0f;
        if (!(std::abs(contender.y[at] - expected[at]) <= tolerance)) return false;
      }
    }
  }
  return true;
}

void measure(benchmark::State& state, const Case& c) {
  const std::vector<std::byte> source = random_rows(c);
  const std::vector<float> x = bench::normal_values(static_cast<std::size_t>(c.rows * c.inputs), 3);
  std::vector<Contender> contenders;
  for (const PackedVariant& v : packed_variants()) {
    const bool slow = v.needs == CpuFeatures{} && packed_variants().size() > 1;
    if (cpu_features().contains(v.needs) && !slow) contenders.emplace_back(v, c, source, x);
  }
  const AlignedBytes scratch = aligned(kPackedScratchBytes);
  const double products =
      static_cast<double>(c.rows) * static_cast<double>(c.inputs) * static_cast<double>(c.outputs);
  // Enough repetitions that a sample takes about 0.2 ms: short ones find the quiet moments of a
  // shared machine.
  const auto repeats = static_cast<std::size_t>(std::max(1.0, 2e-4 * 1e11 / products));
  std::vector<double> read;
  for (auto _ : state) {
    const auto start = Clock::now();
    std::size_t copy = 0;
    for (int round = 0; round < kRounds; ++round) {
      for (Contender& contender : contenders) {
        const auto begin = Clock::now();
        for (std::size_t i = 0; i < repeats; ++i) {
          contender.run(c, x.data(), copy + i, scratch.get());
        }
        contender.seconds.push_back(seconds_since(begin) / static_cast<double>(repeats));
      }
      copy += repeats;
      if (c.cached || c.rows != 1 || round % 8 != 0) continue;
      read.push_back(contenders.back().read_gbps(read.size()));
    }
    state.SetIterationTime(seconds_since(start));
  }
  for (Contender& contender : contenders) {
    if (is_right(c, contender, x.data(), scratch.get())) continue;
    state.SkipWithError(
        (std::string(contender.variant->name) + " differs from the reference").c_str());
    return;
  }
  for (const Contender& contender : contenders) {
    const double s = median(contender.seconds);
    const std::string name(contender.variant->name);
    const double best = *std::min_element(contender.seconds.begin(), contender.seconds.end());
    state.counters[name + "_G"] = products / s / 1e9;
    state.counters[name + "_best"] = products / best / 1e9;
    const double gbs = static_cast<double>(contender.matrix_bytes) / s / 1e9;
    if (c.rows == 1) state.counters[name + "_GBs"] = gbs;
    if (c.rows == 1 && !c.cached) state.counters[name + "_share"] = gbs / median(read);
  }
  if (c.rows == 1 && !c.cached) state.counters["read_GBs"] = median(read);
}

// Scales and integers of every record as the formula gives them.
bool records_are_right(const RecordsView& records, const std::vector<float>& x, std::int64_t rows) {
  const auto inputs = static_cast<std::size_t>(records.inputs);
  std::vector<std::int16_t> q(inputs);
  std::vector<float> a((inputs + reference::kI12Group - 1) / reference::kI12Group);
  for (std::int64_t r = 0; r < rows; ++r) {
    reference::quantize_i12({x.data() + r * records.inputs, inputs}, q, a);
    const std::byte* record = records.data + r * records.record_bytes;
    if (std::memcmp(record + records.q_offset, q.data(), q.size() * sizeof q[0]) != 0 ||
        std::memcmp(record + records.scales_offset, a.data(), a.size() * sizeof a[0]) != 0)
      return false;
  }
  return true;
}

// Microseconds per row, of records with one kind of table.
double quantize_us(const PackedVariant& v, const std::vector<float>& x, std::int64_t inputs,
                   std::int64_t rows, ActivationNeeds tables, bool& all_right) {
  const ActivationLayout layout = activation_layout(inputs, v.tiling, tables);
  const AlignedBytes records = aligned(static_cast<std::size_t>(layout.record_bytes * rows));
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    v.quantize({x.data(), inputs, 0, rows, layout.view(records.get())});
    seconds.push_back(seconds_since(begin) / static_cast<double>(rows));
  }
  all_right = all_right && records_are_right(layout.view(records.get()), x, rows);
  return median(seconds) * 1e6;
}

void measure_quantize(benchmark::State& state, std::int64_t inputs, std::int64_t rows) {
  const std::vector<float> x = bench::normal_values(static_cast<std::size_t>(rows * inputs), 3);
  bool all_right = true;
  for (auto _ : state) {
    const auto start = Clock::now();
    for (const PackedVariant& v : packed_variants()) {
      if (!cpu_features().contains(v.needs)) continue;
      for (const bool ternary : {false, true}) {
        if (ternary && v.tiling == PackedTiling::kBytes) continue;
        const double us = quantize_us(
            v, x, inputs, rows, {.subset_tables = !ternary, .ternary_tables = ternary}, all_right);
        const std::string name = std::string(v.name) + (ternary ? "_ternary" : "");
        state.counters[name + "_us"] = us;
        state.counters[name + "_GBs"] = static_cast<double>(inputs) * sizeof(float) / us / 1e3;
      }
    }
    state.SetIterationTime(seconds_since(start));
  }
  if (!all_right) state.SkipWithError("a record differs from the formula");
}

// The first and the last row decode to what the codec of quant/ reads in the source.
bool rows_are_right(const PackedLayout& layout, const std::byte* weights,
                    const PackedSource& source) {
  const auto inputs = static_cast<std::size_t>(layout.inputs);
  std::vector<float> found(inputs);
  std::vector<float> expected(inputs);
  for (const std::int64_t r : {std::int64_t{0}, layout.rows - 1}) {
    packed_variants().back().decode_row(layout.view(weights), r, found.data());
    quant::decode_row(source.format, source.data + r * source.row_bytes, source.inputs,
                      expected.data());
    if (found != expected) return false;
  }
  return true;
}

void measure_repack(benchmark::State& state, const Case& c) {
  const std::vector<std::byte> source = random_rows(c);
  for (auto _ : state) {
    const auto start = Clock::now();
    for (const PackedTiling tiling : {PackedTiling::kBytes, PackedTiling::kWords}) {
      const PackedLayout layout = packed_layout(c.format, c.outputs, c.inputs, false, tiling);
      const AlignedBytes weights = aligned(layout.bytes());
      const PackedSource rows{c.format, c.inputs, source.data(),
                              static_cast<std::int64_t>(source.size()) / c.outputs};
      repack(layout, rows, 0, c.outputs, weights.get(), 0);  // touches the pages
      const auto begin = Clock::now();
      benchmark::DoNotOptimize(repack(layout, rows, 0, c.outputs, weights.get(), 0));
      state.counters[tiling == PackedTiling::kBytes ? "bytes_GBs" : "words_GBs"] =
          static_cast<double>(source.size()) / seconds_since(begin) / 1e9;
      if (!rows_are_right(layout, weights.get(), rows))
        state.SkipWithError("a repacked row differs from its source");
      const auto scan = Clock::now();
      benchmark::DoNotOptimize(scan_packed(rows, 0, c.outputs));
      state.counters["scan_GBs"] = static_cast<double>(source.size()) / seconds_since(scan) / 1e9;
    }
    state.SetIterationTime(seconds_since(start));
  }
}

std::string label(const char* what, const Case& c) {
  return std::string("packed/") + what + (c.cached ? "_cached/" : "/") +
         std::string(quant::info(c.format).tag) + (c.code3 ? "_code3" : "") + "/" +
         std::to_string(c.outputs) + "x" + std::to_string(c.inputs) + "/" + std::to_string(c.rows);
}

void add(const char* what, const Case& c) {
  benchmark::RegisterBenchmark(label(what, c).c_str(),
                               [c](benchmark::State& state) { measure(state, c); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

const int kRegistered = [] {
  using quant::Format;
  for (const Format f : {Format::kQ1G128, Format::kT2G128, Format::kT2G64, Format::kT1G128}) {
    for (const std::int64_t inputs : {2048, 4096}) {
      add("product", {f, 4096, inputs, 1, true, false});
    }
    add("product", {f, 1024, 17408, 1, true, false});
    add("product", {f, 4096, 4096, 1, false, false});
    for (const std::int64_t rows : {2, 4, 8, 64, 512}) {
      add("product", {f, 1024, 4096, rows, true, false});
    }
    add("product", {f, 6144, 2048, 512, true, false});
    add("product_f32", {f, 4096, 4096, 1, true, true});
    add("product_f32", {f, 1024, 4096, 64, true, true});
  }
  add("product", {Format::kT2G128, 4096, 4096, 1, true, false, true});
  for (const std::int64_t inputs : {2048, 17408}) {
    benchmark::RegisterBenchmark(
        ("packed/quantize_cached/" + std::to_string(inputs)).c_str(),
        [inputs](benchmark::State& state) { measure_quantize(state, inputs, 8); })
        ->Iterations(1)
        ->UseManualTime();
  }
  for (const Format f : {Format::kQ1G128, Format::kT2G64, Format::kT2G128, Format::kT1G128}) {
    const Case c{f, 16384, 2048, 0, true, false};
    benchmark::RegisterBenchmark(label("repack", c).c_str(),
                                 [c](benchmark::State& state) { measure_repack(state, c); })
        ->Iterations(1)
        ->UseManualTime();
  }
  return 0;
}();

}  // namespace
}  // namespace tern::cpu
