// Measures the kernels of packed products on a real device against the read rate of the same
// process: interleaved, random data, cold.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "backend/cuda/embed/embedded.h"
#include "tests/gpu/gpu_device.h"
#include "tests/gpu/packed_expectation.h"
#include "tests/gpu/products_bench.h"

namespace tern::gpu_tests {
[[nodiscard]] std::span<const cuda::EmbeddedCubin> embedded_cubins();

namespace {

constexpr int kRounds = 15;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Functions of the benchmark's own modules.
class OwnKernels {
 public:
  explicit OwnKernels(const GpuDevice& device) : device_(device) {
    for (const cuda::EmbeddedCubin& cubin : embedded_cubins()) {
      cuda::ModuleHandle* module = nullptr;
      device.context
          ->check(device.api->module_load(&module, cubin.bytes.data()), "cuModuleLoadData")
          .value();
      modules_.push_back(module);
    }
  }
  [[nodiscard]] cuda::FunctionHandle* find(const std::string& entry) const {
    for (cuda::ModuleHandle* module : modules_) {
      cuda::FunctionHandle* function = nullptr;
      if (device_.api->module_function(&function, module, entry.c_str()) == cuda::kSuccess)
        return function;
    }
    std::fprintf(stderr, "there is no kernel %s\n", entry.c_str());
    std::exit(1);
  }

 private:
  const GpuDevice& device_;
  std::vector<cuda::ModuleHandle*> modules_;
};

// A graph of many nodes, and what one node takes.
struct Candidate {
  std::string name;
  cuda::Graph graph;
  std::size_t nodes;
  std::vector<double> microseconds;  // a node, by round
};

// Captures what `record` appends and keeps it as a candidate.
Candidate candidate(const GpuDevice& device, std::string name, std::size_t nodes,
                    const std::function<Result<void>()>& record) {
  return {std::move(name), cuda::capture(*device.stream, record).value(), nodes, {}};
}

// A, B, C, A, B, C ...
void measure(const GpuDevice& device, std::vector<Candidate>& all) {
  cuda::Event begin = cuda::Event::make(device.context, true).value();
  cuda::Event end = cuda::Event::make(device.context, true).value();
  for (int round = -2; round < kRounds; ++round)
    for (Candidate& c : all) {
      device.stream->record(begin).value();
      c.graph.launch(*device.stream).value();
      device.stream->record(end).value();
      end.wait().value();
      float milliseconds = 0;
      device.context
          ->check(device.api->event_elapsed(&milliseconds, begin.handle(), end.handle()),
                  "cuEventElapsedTime")
          .value();
      if (round >= 0)
        c.microseconds.push_back(static_cast<double>(milliseconds) * 1e3 /
                                 static_cast<double>(c.nodes));
    }
}

Result<void> read_node(const GpuDevice& device, cuda::Address data, std::uint64_t bytes,
                       cuda::Address sink, unsigned blocks) {
  TernReadParams p{};
  p.vectors = bytes / 16;
  return cuda::launch(*device.stream, device.modules->function(cuda::KernelId::kReadBytes).value(),
                      cuda::read_launch(p, blocks), {data, sink, sink});
}

struct Shape {
  const char* name;
  std::int64_t outputs, inputs;
};

struct VariantRow {
  const char* entry;  // null: the kernel of the library
  int warps;
  int per_core;
  bool is_early;
};

constexpr VariantRow kVariants[] = {
    {nullptr, 0, 0, false},           {nullptr, 0, 0, true},
    {"gemv_a2_t512_b1", 16, 1, true}, {"gemv_a3_t512_b1", 16, 1, true},
    {"gemv_a1_t768_b1", 24, 1, true}, {"gemv_a2_t768_b1", 24, 1, true},
    {"gemv_a2_t256_b3", 8, 3, true},
};

class GemvBench {
 public:
  GemvBench(const GpuDevice& device, const OwnKernels& own, double ceiling)
      : device_(device), own_(own), ceiling_(ceiling) {}

  // False: a result was wrong.
  bool run(const Shape& shape) {
    std::mt19937 random(11);
    const auto blocks = random_q1(shape.outputs, shape.inputs, random);
    const auto tiles = tiles16(blocks, shape.outputs, shape.inputs);
    const std::uint64_t stride = (tiles.size() + 255) / 256 * 256;
    const std::size_t copies = std::clamp<std::size_t>((std::size_t{1} << 30) / stride, 8, 400);
    Arena weights(device_, stride * copies);
    weights.put(0, tiles);
    for (std::size_t i = 1; i < copies; ++i)
      device_.context
          ->check(device_.api->copy_on_device(weights.address() + i * stride, weights.address(),
                                              tiles.size(), device_.stream->handle()),
                  "cuMemcpyDtoDAsync")
          .value();
    std::normal_distribution<float> normal;
    std::vector<float> x(static_cast<std::size_t>(shape.inputs));
    for (float& v : x) v = normal(random);
    const QuantizedRow row = quantized(x);
    const cuda::RecordLayout layout = cuda::record_layout(shape.inputs);
    const auto outputs = static_cast<std::uint64_t>(shape.outputs);
    Arena arena(device_, layout.record_bytes + outputs * 4);
    arena.put(0, expected_record(row));
    TernGemvParams p{};
    p.record_bytes = layout.record_bytes;
    p.scales_offset = layout.scales_offset;
    p.y = layout.record_bytes;
    p.y_row_stride = outputs;
    p.outputs = static_cast<tern_u32>(outputs);
    p.groups = static_cast<tern_u32>(shape.inputs / 128);
    p.axis = kTernAllRows;
    const std::vector<float> expected = expected_product(blocks, shape.outputs, row);
    const cuda::Bases bases{weights.address(), arena.address(), arena.address()};
    std::vector<Candidate> all;
    add_reads(all, weights.address(), stride, tiles.size(), copies);
    bool is_right = true;
    for (const VariantRow& v : kVariants) {
      const cuda::GemvGeometry g =
          cuda::gemv_geometry(v.entry == nullptr ? cuda::gemv_variant(shape.inputs)
                              : v.warps > 16     ? cuda::KernelId::kGemvQ1G128Deep
                                                 : cuda::KernelId::kGemvQ1G128,
                              shape.outputs, shape.inputs, device_.cores, v.warps, v.per_core);
      cuda::FunctionHandle* function =
          v.entry == nullptr ? device_.modules->function(g.kernel).value() : own_.find(v.entry);
      const std::string name = fmt::format("{}{} ({} x {})", v.entry ? v.entry : "gemv_q1_g128",
                                           v.is_early ? " early" : "", g.blocks, g.threads);
      int threads = 0;
      (void)device_.api->function_attribute(&threads, cuda::kMaxThreads, function);
      if (g.threads > static_cast<unsigned>(threads)) continue;
      device_.stream->fill(arena.address() + p.y, 0xA5, outputs * 4).value();
      cuda::launch(*device_.stream, function, cuda::gemv_launch(p, 1, g), bases).value();
      device_.stream->synchronize().value();
      if (std::memcmp(arena.get<float>(p.y, outputs).data(), expected.data(), outputs * 4) != 0) {
        std::printf("WRONG RESULT: %s\n", name.c_str());
        is_right = false;
      }
      all.push_back(candidate(device_, name, copies, [&]() -> Result<void> {
        for (std::size_t i = 0; i < copies; ++i) {
          TernGemvParams one = p;
          one.weights = i * stride;
          TERN_TRY(cuda::launch(*device_.stream, function, cuda::gemv_launch(one, 1, g), bases,
                                v.is_early));
        }
        return {};
      }));
    }
    measure(device_, all);
    report(shape, tiles.size(), all);
    return is_right;
  }

 private:
  void add_reads(std::vector<Candidate>& all, cuda::Address data, std::uint64_t stride,
                 std::uint64_t bytes, std::size_t copies) {
    sink_ = std::make_unique<Arena>(device_, 256);
    (void)device_.modules->function(cuda::KernelId::kReadBytes).value();
    for (const unsigned per_core : {1U, 2U})
      all.push_back(candidate(device_, fmt::format("read only, {} blocks a core", per_core), copies,
                              [&]() -> Result<void> {
                                for (std::size_t i = 0; i < copies; ++i)
                                  TERN_TRY(
                                      read_node(device_, data + i * stride, bytes, sink_->address(),
                                                per_core * static_cast<unsigned>(device_.cores)));
                                return {};
                              }));
  }

  void report(const Shape& shape, std::uint64_t bytes, const std::vector<Candidate>& all) const {
    const double limit = 1.6 + static_cast<double>(bytes) / (ceiling_ * 1e3);
    std::printf("\n%s: %lld x %lld, %.2f MB cold, limit 1.6 us + bytes / ceiling = %.2f us\n",
                shape.name, static_cast<long long>(shape.outputs),
                static_cast<long long>(shape.inputs), static_cast<double>(bytes) / 1e6, limit);
    std::printf("  %-38s %8s %8s %8s %10s %8s\n", "", "median", "best", "worst", "GB/s", "limit/t");
    for (const Candidate& c : all) {
      const double t = median(c.microseconds);
      const auto [low, high] = std::minmax_element(c.microseconds.begin(), c.microseconds.end());
      std::printf("  %-38s %8.2f %8.2f %8.2f %10.0f %8.2f\n", c.name.c_str(), t, *low, *high,
                  static_cast<double>(bytes) / t / 1e3, limit / t);
    }
  }

  const GpuDevice& device_;
  const OwnKernels& own_;
  double ceiling_;
  std::unique_ptr<Arena> sink_;
};

// GB/s of reading a large buffer of random bits.
double read_ceiling(const GpuDevice& device, const OwnKernels& own) {
  constexpr std::uint64_t kBytes = std::uint64_t{2} << 30;
  Arena data(device, kBytes);
  std::mt19937 random(1);
  std::vector<std::uint32_t> piece(1U << 22);
  for (std::uint32_t& v : piece) v = static_cast<std::uint32_t>(random());
  for (std::uint64_t at = 0; at < kBytes; at += piece.size() * 4) data.put(at, piece);
  Arena sink(device, 256);
  (void)device.modules->function(cuda::KernelId::kReadBytes).value();
  std::vector<Candidate> all;
  for (const unsigned per_core : {1U, 2U, 8U})
    all.push_back(
        candidate(device, fmt::format("{} blocks a core", per_core), 1, [&]() -> Result<void> {
          return read_node(device, data.address(), kBytes, sink.address(),
                           per_core * static_cast<unsigned>(device.cores));
        }));
  cuda::FunctionHandle* empty = own.find("empty");
  all.push_back(candidate(device, "empty node", 200, [&]() -> Result<void> {
    cuda::LaunchConfig config;
    config.grid_x = static_cast<unsigned>(device.cores);
    config.block_x = 512;
    config.stream = device.stream->handle();
    for (int i = 0; i < 200; ++i)
      TERN_TRY(device.context->check(device.api->launch(&config, empty, nullptr, nullptr),
                                     "cuLaunchKernelEx"));
    return {};
  }));
  measure(device, all);
  double best = 0;
  for (const Candidate& c : all) {
    const double t = median(c.microseconds);
    if (c.nodes > 1) {
      std::printf("  empty graph node: %.3f us\n", t);
      continue;
    }
    std::printf("  read 2 GiB, %s: %.0f GB/s\n", c.name.c_str(),
                static_cast<double>(kBytes) / t / 1e3);
    best = std::max(best, static_cast<double>(kBytes) / t / 1e3);
  }
  return best;
}

int run() {
  Result<GpuDevice> opened = GpuDevice::open();
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.error().what());
    return 77;
  }
  const GpuDevice& device = *opened;
  std::printf("%s, %s, %d multiprocessors\n", device.name.c_str(), device.architecture.c_str(),
              device.cores);
  const OwnKernels own(device);
  const double ceiling = read_ceiling(device, own);
  std::printf("  ceiling: %.0f GB/s\n", ceiling);
  GemvBench bench(device, own, ceiling);
  bool is_right = true;
  for (const Shape& shape :
       {Shape{"o", 4096, 4096}, Shape{"qkv", 6144, 4096}, Shape{"gate+up", 24576, 4096},
        Shape{"down", 4096, 12288}, Shape{"head", 151669, 4096}, Shape{"1.7B o", 2048, 2048},
        Shape{"27B down", 5120, 17408}})
    is_right = bench.run(shape) && is_right;
  is_right = bench_products(device) && is_right;
  bench_store(device);
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace tern::gpu_tests

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return tern::gpu_tests::run();
}
