// Measures the vendor bridge against a bare call of cuBLASLt.
#include "tests/gpu/products_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "backend/cuda/vendor/cublaslt_vendor.h"
#include "backend/cuda/vendor/encode_context.h"
#include "backend/gpu/vendor/bridge.h"

namespace tern::gpu_tests {
namespace {

constexpr std::uint64_t kSize = 4096;
constexpr int kNodes = 8;

// The library called as its manual says, without anything of ours around it.
class BareCall {
 public:
  BareCall(const cuda::CublasLtApi& api, cuda::Address workspace)
      : api_(api), workspace_(workspace) {
    must(api.create(&handle_));
    must(api.matmul_create(&matmul_, cuda::kLtCompute32F, cuda::kLtF32));
    const std::int32_t transposed = cuda::kLtTranspose;
    must(api.matmul_set(matmul_, cuda::kLtTransposeA, &transposed, 4));
    must(api.layout_create(&square_, cuda::kLtBf16, kSize, kSize, kSize));
    cuda::LtPreference* preference = nullptr;
    must(api.preference_create(&preference));
    const std::size_t bytes = kWorkspace;
    must(api.preference_set(preference, cuda::kLtWorkspaceBytes, &bytes, sizeof bytes));
    cuda::LtHeuristic found;
    int count = 0;
    must(api.heuristic(handle_, matmul_, square_, square_, square_, square_, preference, 1, &found,
                       &count));
    algorithm_ = found.algorithm;
  }
  void call(cuda::Address a, cuda::Address b, cuda::Address d, cuda::StreamHandle* stream) const {
    const float one = 1;
    const float zero = 0;
    must(api_.matmul(handle_, matmul_, &one, b, square_, a, square_, &zero, d, square_, d, square_,
                     &algorithm_, workspace_, kWorkspace, stream));
  }
  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;

 private:
  static void must(int status) {
    if (status == 0) return;
    std::fprintf(stderr, "cuBLASLt: %s\n", cuda::lt_status_name(status));
    std::exit(1);
  }
  const cuda::CublasLtApi& api_;
  cuda::Address workspace_;
  cuda::LtHandle* handle_ = nullptr;
  cuda::LtMatmul* matmul_ = nullptr;
  cuda::LtLayout* square_ = nullptr;
  cuda::LtAlgorithm algorithm_;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

bool bench_products(const GpuDevice& device) {
  const Result<cuda::CublasLtApi> api = cuda::load_cublaslt_api(cuda::read_library_search());
  if (!api.ok()) {
    std::printf("\nvendor products: %s\n", api.error().what());
    return true;
  }
  std::printf("\nvendor products: %s, version %zu\n", api->path.c_str(), api->version());
  const std::uint64_t bytes = kSize * kSize * 2;
  std::mt19937 random(3);
  std::vector<std::uint16_t> values(kSize * kSize);
  const auto fill = [&](const Arena& arena) {
    for (std::uint16_t& v : values)  // bf16 between 2^-3 and 2, of either sign
      v = static_cast<std::uint16_t>((random() & 0x81FFU) | 0x3E00U);
    arena.put(0, values);
  };
  const auto allocate = [&] { return device.context->allocate(bytes, "a product").value(); };
  const auto a = allocate(), b = allocate(), d = allocate(), bare_d = allocate();
  {
    Arena source(device, bytes);
    for (const auto& m : {a, b}) {
      fill(source);
      device.context
          ->check(device.api->copy_on_device(m->address(), source.address(), bytes,
                                             device.stream->handle()),
                  "cuMemcpyDtoDAsync")
          .value();
      device.stream->synchronize().value();
    }
  }
  const auto workspace = device.context->allocate(BareCall::kWorkspace, "a workspace").value();
  auto vendor = cuda::CublasLtVendor::make(*api, device.context, device.modules).value();
  const auto bridge = gpu::make_vendor_bridge(vendor, std::make_shared<gpu::ActiveThreads>());
  backend::GemmProblem problem;
  problem.op = "benchmark";
  const auto square = [](const std::shared_ptr<const cuda::DeviceMemory>& memory) {
    backend::Operand o;
    o.memory = memory;
    o.rows = o.cols = o.row_stride = kSize;
    o.dtype = Dtype::kBf16;
    return o;
  };
  problem.a = square(a);
  problem.b = square(b);
  problem.b.transposed = true;
  problem.d = square(d);
  const backend::GemmPlan plan = bridge->plan(problem).value();
  const BareCall bare(*api, workspace->address());
  cuda::CudaEncodeContext context(*device.stream, workspace);
  const cuda::Event begin = cuda::Event::make(device.context, true).value();
  const cuda::Event end = cuda::Event::make(device.context, true).value();
  const auto timed = [&](const auto& append) {
    device.stream->record(begin).value();
    for (int i = 0; i < kNodes; ++i) append();
    device.stream->record(end).value();
    end.wait().value();
    float ms = 0;
    device.context->check(device.api->event_elapsed(&ms, begin.handle(), end.handle()), "elapsed")
        .value();
    return static_cast<double>(ms) / kNodes;
  };
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> host;
  for (int round = -3; round < 15; ++round) {
    const auto before = std::chrono::steady_clock::now();
    bridge->encode(plan, context).value();
    const double us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - before)
            .count();
    device.stream->synchronize().value();
    const double mine = timed([&] { bridge->encode(plan, context).value(); });
    const double bare_ms = timed(
        [&] { bare.call(a->address(), b->address(), bare_d->address(), device.stream->handle()); });
    if (round < 0) continue;
    ours.push_back(mine);
    theirs.push_back(bare_ms);
    host.push_back(us);
  }
  const double flop = 2.0 * kSize * kSize * kSize;
  std::printf(
      "  bridge %.3f ms (%.0f TFLOP/s), bare call %.3f ms (%.0f TFLOP/s), ratio %.3f; "
      "encode %.1f us of host time\n",
      median(ours), flop / median(ours) / 1e9, median(theirs), flop / median(theirs) / 1e9,
      median(ours) / median(theirs), median(host));
  std::vector<std::uint16_t> x(kSize * kSize);
  std::vector<std::uint16_t> y(kSize * kSize);
  device.stream->copy_to_host(x.data(), d->address(), bytes).value();
  device.stream->copy_to_host(y.data(), bare_d->address(), bytes).value();
  device.stream->synchronize().value();
  if (x != y)
    std::printf("  the two results differ in their bits (other algorithms were chosen)\n");
  const bool has_values = std::any_of(x.begin(), x.end(), [](std::uint16_t v) { return v != 0; });
  return has_values;
}

}  // namespace tern::gpu_tests
