// The vendor bridge over the real cuBLASLt, against products in double.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cuda/vendor/cublaslt_vendor.h"
#include "backend/cuda/vendor/encode_context.h"
#include "backend/gpu/vendor/bridge.h"
#include "base/half.h"
#include "tests/gpu/gpu_device.h"

namespace tern::gpu_tests {
namespace {

using backend::Activation;

struct Case {
  Dtype a = Dtype::kF32, b = Dtype::kF32, d = Dtype::kF32;
  std::uint64_t m = 1, n = 1, k = 1;
  bool is_a_transposed = false;
  bool is_b_transposed = true;
  std::uint32_t batch = 1;
  std::uint64_t padding = 0;  // elements beyond the width of every row
  float alpha = 1, beta = 0;
  bool has_bias = false;
  Activation activation = Activation::kNone;
  bool has_shared_b = false;  // batch stride 0
};

std::uint16_t to_bits(float v, Dtype dtype) {
  return dtype == Dtype::kF16 ? float_to_half(v) : float_to_bf16(v);
}
float rounded(float v, Dtype dtype) {
  if (dtype == Dtype::kF32) return v;
  const std::uint16_t bits = to_bits(v, dtype);
  return dtype == Dtype::kF16 ? half_to_float(bits) : bf16_to_float(bits);
}

// A batch of matrices of random values in device memory, its values as floats beside it.
struct Matrix {
  std::shared_ptr<const cuda::DeviceMemory> memory;
  backend::Operand operand;
  std::vector<float> values;

  [[nodiscard]] double at(std::uint64_t batch, std::uint64_t row, std::uint64_t col) const {
    return static_cast<double>(
        values[batch * operand.batch_stride + row * operand.row_stride + col]);
  }
};

class GpuVendor : public testing::Test {
 protected:
  void SetUp() override {
    Result<GpuDevice> device = GpuDevice::open();
    if (!device.ok()) GTEST_SKIP() << device.error().message();
    device_ = std::move(*device);
    Result<cuda::CublasLtApi> api = cuda::load_cublaslt_api(cuda::read_library_search());
    if (!api.ok()) GTEST_SKIP() << api.error().message();
    vendor_ = cuda::CublasLtVendor::make(*api, device_.context, device_.modules).value();
    bridge_ = gpu::make_vendor_bridge(vendor_, std::make_shared<gpu::ActiveThreads>());
    workspace_ = device_.context->allocate(std::uint64_t{256} << 20, "a workspace").value();
  }

  Matrix matrix(Dtype dtype, std::uint64_t rows, std::uint64_t cols, const Case& t,
                std::uint32_t matrices, std::uint64_t offset_elements = 0) {
    Matrix m;
    const std::uint64_t stride = cols + t.padding;
    const std::uint64_t apart = rows * stride;
    m.operand.rows = rows;
    m.operand.cols = cols;
    m.operand.row_stride = stride;
    m.operand.batch_stride = matrices > 1 ? apart : 0;
    m.operand.dtype = dtype;
    m.operand.offset = offset_elements * size_of(dtype);
    m.values.resize(apart * matrices);
    std::normal_distribution<float> normal;
    for (float& v : m.values) v = rounded(normal(random_), dtype);
    const std::uint64_t bytes = m.operand.offset + m.values.size() * size_of(dtype);
    m.memory = device_.context->allocate(bytes, "a matrix").value();
    m.operand.memory = m.memory;
    put(m);
    return m;
  }
  void put(const Matrix& m) {
    const cuda::Address to = m.memory->address() + m.operand.offset;
    if (m.operand.dtype == Dtype::kF32) {
      device_.stream->copy_to_device(to, m.values.data(), m.values.size() * 4).value();
    } else {
      std::vector<std::uint16_t> bits(m.values.size());
      for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = to_bits(m.values[i], m.operand.dtype);
      device_.stream->copy_to_device(to, bits.data(), bits.size() * 2).value();
    }
    device_.stream->synchronize().value();
  }
  std::vector<float> get(const Matrix& m) {
    std::vector<float> values(m.values.size());
    const cuda::Address from = m.memory->address() + m.operand.offset;
    if (m.operand.dtype == Dtype::kF32) {
      device_.stream->copy_to_host(values.data(), from, values.size() * 4).value();
      device_.stream->synchronize().value();
      return values;
    }
    std::vector<std::uint16_t> bits(values.size());
    device_.stream->copy_to_host(bits.data(), from, bits.size() * 2).value();
    device_.stream->synchronize().value();
    for (std::size_t i = 0; i < bits.size(); ++i)
      values[i] = m.operand.dtype == Dtype::kF16 ? half_to_float(bits[i]) : bf16_to_float(bits[i]);
    return values;
  }

  static double activated(double x, Activation activation) {
    switch (activation) {
      case Activation::kRelu:
        return x < 0 ? 0 : x;
      case Activation::kSilu:
        return x / (1 + std::exp(-x));
      case Activation::kGeluErf:
        return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
      case Activation::kGeluTanh:
        return 0.5 * x *
               (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
      case Activation::kNone:
        break;
    }
    return x;
  }

  void run(const Case& t, std::uint64_t far_elements = 0) {
    const Matrix a = matrix(t.a, t.is_a_transposed ? t.k : t.m, t.is_a_transposed ? t.m : t.k, t,
                            t.batch, far_elements);
    const Matrix b = matrix(t.b, t.is_b_transposed ? t.n : t.k, t.is_b_transposed ? t.k : t.n, t,
                            t.has_shared_b ? 1 : t.batch);
    const Matrix c = matrix(t.d, t.m, t.n, t, t.batch);
    Matrix d = matrix(t.d, t.m, t.n, t, t.batch);
    const Matrix bias = matrix(t.d, 1, t.n, t, 1);
    // NaN in the old result must not matter, and what lies between the rows must stay.
    for (float& v : d.values) v = std::nanf("");
    put(d);
    backend::GemmProblem problem;
    problem.op = "test";
    problem.a = a.operand;
    problem.a.transposed = t.is_a_transposed;
    problem.b = b.operand;
    problem.b.transposed = t.is_b_transposed;
    problem.c = c.operand;
    problem.d = d.operand;
    problem.batch = t.batch;
    problem.alpha = t.alpha;
    problem.beta = t.beta;
    if (t.has_bias) problem.epilogue.bias = backend::Bias{bias.memory, 0, t.d};
    problem.epilogue.activation = t.activation;
    const Result<backend::GemmPlan> plan = bridge_->plan(problem);
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    cuda::CudaEncodeContext context(*device_.stream, workspace_);
    const Result<void> encoded = bridge_->encode(*plan, context);
    ASSERT_TRUE(encoded.ok()) << encoded.error().message();
    device_.stream->synchronize().value();
    compare(t, a, b, c, d, bias, get(d), describe(problem));
  }

  static void compare(const Case& t, const Matrix& a, const Matrix& b, const Matrix& c,
                      const Matrix& d, const Matrix& bias, const std::vector<float>& found,
                      const std::string& text) {
    // Class H: the sums of class F over the rounded operands, one rounding of the result, and the
    // activation's own error (T, 4 ulp; a hardware tanh is off by 2^-11 at worst).
    const double unit = t.d == Dtype::kF32 ? 0x1p-24 : t.d == Dtype::kF16 ? 0x1p-11 : 0x1p-8;
    const double tanh_error = t.activation == Activation::kGeluTanh ? 0x1p-10 : 0x1p-21;
    int wrong = 0;
    const bool narrows_a = t.a == Dtype::kF32 && t.b != Dtype::kF32;
    for (std::uint64_t i = 0; i < t.batch; ++i)
      for (std::uint64_t r = 0; r < t.m; ++r)
        for (std::uint64_t n = 0; n < d.operand.row_stride; ++n) {
          const float y = found[i * d.operand.batch_stride + r * d.operand.row_stride + n];
          if (n >= t.n) {
            if (!std::isnan(y) && ++wrong <= 3)
              ADD_FAILURE() << text << ": padding of row " << r << " was written";
            continue;
          }
          double sum = 0;
          double magnitude = 0;
          for (std::uint64_t k = 0; k < t.k; ++k) {
            double x = t.is_a_transposed ? a.at(i, k, r) : a.at(i, r, k);
            if (narrows_a) x = static_cast<double>(rounded(static_cast<float>(x), t.b));
            const double term = x * (t.is_b_transposed ? b.at(t.has_shared_b ? 0 : i, n, k)
                                                       : b.at(t.has_shared_b ? 0 : i, k, n));
            sum += term;
            magnitude += std::fabs(term);
          }
          double expected = static_cast<double>(t.alpha) * sum;
          double scale = std::fabs(static_cast<double>(t.alpha)) * magnitude;
          if (t.beta != 0) {
            expected += static_cast<double>(t.beta) * c.at(i, r, n);
            scale += std::fabs(static_cast<double>(t.beta) * c.at(i, r, n));
          }
          if (t.has_bias) {
            expected += bias.at(0, 0, n);
            scale += std::fabs(bias.at(0, 0, n));
          }
          const double before = expected;
          expected = activated(expected, t.activation);
          const double bound =
              (4 * std::sqrt(static_cast<double>(t.k)) + 4) * 0x1p-24 * scale * 1.2 +
              unit * std::fabs(expected) * 1.01 + tanh_error * std::fabs(before) +
              (t.d == Dtype::kF16 ? 0x1p-24 : 1e-37);
          if (!(std::fabs(static_cast<double>(y) - expected) <= bound) && ++wrong <= 3)
            ADD_FAILURE() << text << " at batch " << i << " row " << r << " column " << n << ": "
                          << y << ", expected " << expected << " within " << bound;
        }
    EXPECT_EQ(wrong, 0) << text;
  }

  GpuDevice device_;
  std::shared_ptr<cuda::CublasLtVendor> vendor_;
  std::unique_ptr<gpu::VendorBridge> bridge_;
  std::shared_ptr<const cuda::DeviceMemory> workspace_;
  std::mt19937 random_{12};
};

constexpr Dtype kF32 = Dtype::kF32, kF16 = Dtype::kF16, kBf16 = Dtype::kBf16;

TEST_F(GpuVendor, EveryTypeAndTransposeEqualsTheProductInDouble) {
  for (const auto& [in, out] :
       {std::pair{kF32, kF32}, {kF16, kF16}, {kF16, kF32}, {kBf16, kBf16}, {kBf16, kF32}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        run({.a = in,
             .b = in,
             .d = out,
             .m = 24,
             .n = 40,
             .k = 136,
             .is_a_transposed = ta,
             .is_b_transposed = tb});
        run({.a = in,
             .b = in,
             .d = out,
             .m = 16,
             .n = 64,
             .k = 48,
             .is_a_transposed = ta,
             .is_b_transposed = tb,
             .padding = 8});
      }
}

TEST_F(GpuVendor, Br18_RaggedShapesLeaveWhatLiesBeside) {
  for (const auto& [m, n, k] : {std::array<std::uint64_t, 3>{16, 2304, 768},
                                {16, 2304, 760},
                                {40, 2280, 768},
                                {8, 40, 72},
                                {1, 17, 33},
                                {17, 1, 31},
                                {5, 3, 1}}) {
    run({.a = kF32, .b = kF32, .d = kF32, .m = m, .n = n, .k = k, .padding = 1});
    run({.a = kBf16, .b = kBf16, .d = kBf16, .m = m, .n = n, .k = k, .padding = 8});
  }
}

TEST_F(GpuVendor, AlphaBetaBiasAndActivationsFollowTheSum) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kSilu,
                                      Activation::kGeluErf, Activation::kGeluTanh})
    for (const Dtype dtype : {kF32, kF16, kBf16}) {
      run({.a = dtype,
           .b = dtype,
           .d = dtype,
           .m = 32,
           .n = 48,
           .k = 64,
           .has_bias = true,
           .activation = activation});
      run({.a = dtype,
           .b = dtype,
           .d = dtype,
           .m = 32,
           .n = 48,
           .k = 64,
           .alpha = -0.5F,
           .beta = 0.75F,
           .has_bias = true,
           .activation = activation});
    }
}

TEST_F(GpuVendor, BatchesWithAndWithoutASharedOperand) {
  for (const Dtype dtype : {kF32, kBf16}) {
    run({.a = dtype, .b = dtype, .d = dtype, .m = 16, .n = 24, .k = 32, .batch = 5});
    run({.a = dtype,
         .b = dtype,
         .d = dtype,
         .m = 16,
         .n = 24,
         .k = 32,
         .batch = 3,
         .has_shared_b = true});
  }
}

TEST_F(GpuVendor, MixedPairsAreConvertedAndSaySo) {
  run({.a = kF32, .b = kF16, .d = kF32, .m = 24, .n = 40, .k = 128});
  run({.a = kF32, .b = kBf16, .d = kF32, .m = 24, .n = 40, .k = 128});
}

TEST_F(GpuVendor, Br19_ADeepProductOfOnesIsExact) {
  Case t{.a = kF16, .b = kF16, .d = kF32, .m = 16, .n = 16, .k = 16384};
  run(t);
}

TEST_F(GpuVendor, Br14_OperandsBeyondFourGibibytes) {
  const std::uint64_t far = std::uint64_t{1} << 30;  // elements of f32: 4 GiB
  for (const std::uint64_t at : {far - 16 * 64, far, far + 16 * 64})
    run({.a = kF32, .b = kF32, .d = kF32, .m = 16, .n = 24, .k = 64}, at);
  run({.a = kBf16, .b = kBf16, .d = kBf16, .m = 16, .n = 24, .k = 64}, 3 * far);
}

TEST_F(GpuVendor, SmallShapesForTheCheckingTools) {
  run({.a = kF32,
       .b = kF32,
       .d = kF32,
       .m = 5,
       .n = 7,
       .k = 9,
       .padding = 3,
       .has_bias = true,
       .activation = Activation::kSilu});
  run({.a = kF32, .b = kBf16, .d = kF32, .m = 8, .n = 8, .k = 16});
}

TEST_F(GpuVendor, ACapturedProductIsReplayedOnNewData) {
  Case t{.a = kBf16, .b = kBf16, .d = kF32, .m = 64, .n = 64, .k = 128};
  const Matrix a = matrix(t.a, t.m, t.k, t, 1);
  const Matrix b = matrix(t.b, t.n, t.k, t, 1);
  const Matrix d = matrix(t.d, t.m, t.n, t, 1);
  backend::GemmProblem problem;
  problem.op = "replayed";
  problem.a = a.operand;
  problem.b = b.operand;
  problem.b.transposed = true;
  problem.d = d.operand;
  const backend::GemmPlan plan = bridge_->plan(problem).value();
  cuda::CudaEncodeContext context(*device_.stream, workspace_);
  const cuda::Graph graph =
      cuda::capture(*device_.stream, [&] { return bridge_->encode(plan, context); }).value();
  for (int step = 0; step < 3; ++step) {
    Matrix fresh = a;
    std::normal_distribution<float> normal;
    for (float& v : fresh.values) v = rounded(normal(random_), t.a);
    put(fresh);
    graph.launch(*device_.stream).value();
    device_.stream->synchronize().value();
    compare(t, fresh, b, d, d, d, get(d), "replay");
  }
}

}  // namespace
}  // namespace tern::gpu_tests
