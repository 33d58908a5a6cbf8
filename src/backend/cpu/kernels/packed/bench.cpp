// Speed of the packed products: all variants of this machine interleaved, beside the read bandwidth
// of the same run.
//
// Names: packed/<what>/<format>/<outputs>x<inputs>/<rows>. `_cached` stays in the cache; the others
// rotate buffers past it. Counters: <variant>_G = 1e9 multiply-adds (weights for one row) per
// second, median of the rounds, one thread; <variant>_GBs = packed bytes read per second; read_GBs
// = a plain read of the same buffers, share = GBs / read_GBs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernels/packed/packed.h"
#include "base/half.h"
#include "quant/format.h"

namespace {

using namespace tern;       // NOLINT
using namespace tern::cpu;  // NOLINT

// Time on the processor of this thread: other programs of the machine do not count.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static time_point now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
  }
};

constexpr int kRounds = 101;
constexpr std::size_t kPastCache = std::size_t{1}
                                   << 30;  // bytes of rotated buffers: beyond any cache here

struct AlignedFree {
  void operator()(std::byte* p) const { std::free(p); }  // NOLINT
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedFree>;

AlignedBytes aligned(std::size_t bytes) {
  const std::size_t huge = std::size_t{2} << 20;
  return AlignedBytes(
      static_cast<std::byte*>(std::aligned_alloc(huge, (bytes + huge - 1) / huge * huge)));
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

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
        copies(c.cached ? 1 : std::max<std::size_t>(2, kPastCache / layout.bytes())),
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

  void run(const Case& c, const float* x, std::size_t copy, std::byte* scratch) {
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
    c.floats ? variant->matmul_f32(args) : variant->matmul(args);
  }
};

double read_gb_per_second(const std::byte* p, std::size_t bytes) {
  const auto start = Clock::now();
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  std::uint64_t d = 0;
  for (std::size_t i = 0; i + 64 <= bytes; i += 64) {
    __builtin_prefetch(p + i + 2048);  // as far ahead as the kernels do
    std::uint64_t v[8];
    std::memcpy(v, p + i, 64);
    a ^= v[0] ^ v[4];
    b ^= v[1] ^ v[5];
    c ^= v[2] ^ v[6];
    d ^= v[3] ^ v[7];
  }
  benchmark::DoNotOptimize(a ^ b ^ c ^ d);
  return static_cast<double>(bytes) / seconds_since(start) / 1e9;
}

void check(benchmark::State& state, const Case& c, const std::vector<Contender>& contenders) {
  const std::vector<float>& first = contenders.front().y;
  for (const Contender& other : contenders) {
    for (std::size_t i = 0; i < first.size(); ++i) {
      const float tolerance = c.floats ? 1e-4f * (1.0f + std::abs(first[i])) : 0.0f;
      if (!(std::abs(first[i] - other.y[i]) <= tolerance)) {
        state.SkipWithError("variants disagree");
        return;
      }
    }
  }
}

void measure(benchmark::State& state, const Case& c) {
  const std::vector<std::byte> source = random_rows(c);
  std::vector<float> x(static_cast<std::size_t>(c.rows * c.inputs));
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  std::vector<Contender> contenders;
  for (const PackedVariant& v : packed_variants()) {
    const bool slow = v.needed == CpuFeatures{} && packed_variants().size() > 1;
    if (cpu_features().contains(v.needed) && !slow) contenders.emplace_back(v, c, source, x);
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
      const Contender& last = contenders.back();
      const std::size_t size = std::min(last.copies * last.matrix_bytes, std::size_t{64} << 20);
      read.push_back(read_gb_per_second(last.weights.get(), size));
    }
    state.SetIterationTime(seconds_since(start));
  }
  check(state, c, contenders);
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

void measure_quantize(benchmark::State& state, std::int64_t inputs, std::int64_t rows) {
  std::vector<float> x(static_cast<std::size_t>(rows * inputs), 0.5f);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  for (auto _ : state) {
    const auto start = Clock::now();
    for (const PackedVariant& v : packed_variants()) {
      if (!cpu_features().contains(v.needed)) continue;
      for (const bool ternary : {false, true}) {
        const ActivationLayout layout = activation_layout(
            inputs, v.tiling, {.subset_tables = !ternary, .ternary_tables = ternary});
        if (ternary && v.tiling == PackedTiling::kBytes) continue;
        const AlignedBytes records = aligned(static_cast<std::size_t>(layout.record_bytes * rows));
        std::vector<double> seconds;
        for (int round = 0; round < kRounds; ++round) {
          const auto begin = Clock::now();
          v.quantize({x.data(), inputs, 0, rows, layout.view(records.get())});
          seconds.push_back(seconds_since(begin) / static_cast<double>(rows));
        }
        state.counters[std::string(v.name) + (ternary ? "_ternary_us" : "_us")] =
            median(seconds) * 1e6;
      }
    }
    state.SetIterationTime(seconds_since(start));
  }
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
        ("packed/quantize/" + std::to_string(inputs)).c_str(),
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
