// Test support for vendor products: problems with poisoned memory and guards, and their results in
// double.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/vendor_gemm.h"
#include "base/half.h"

namespace tern::backend::test {

inline double load(Dtype dtype, const std::byte* at) {
  if (dtype == Dtype::kF32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return static_cast<double>(dtype == Dtype::kF16 ? half_to_float(bits) : bf16_to_float(bits));
}

inline void store(Dtype dtype, std::byte* at, double value) {
  const auto rounded = static_cast<float>(value);
  if (dtype == Dtype::kF32) {
    std::memcpy(at, &rounded, sizeof rounded);
    return;
  }
  const std::uint16_t bits = dtype == Dtype::kF16 ? float_to_half(rounded) : float_to_bf16(rounded);
  std::memcpy(at, &bits, sizeof bits);
}

// From the formulas alone, in double.
inline double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGeluErf:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

// Heap memory in which every byte is 0xff: NaN in each of the dtypes.
inline std::shared_ptr<HostAllocation> poisoned(std::uint64_t device, std::uint64_t bytes) {
  auto memory = std::make_shared<std::vector<std::byte>>(bytes, std::byte{0xff});
  return std::make_shared<HostAllocation>(device, memory->data(), bytes, memory);
}

inline std::byte* data_of(const Operand& operand) {
  return static_cast<const HostAllocation&>(*operand.memory).data() + operand.offset;
}

// Where element (b, r, c) of an operand lies, in bytes from its offset.
inline std::uint64_t position(const Operand& operand, std::uint64_t b, std::uint64_t r,
                              std::uint64_t c) {
  return (b * operand.batch_stride + r * operand.row_stride + c) * size_of(operand.dtype);
}

struct GemmCase {
  std::uint64_t m = 4, n = 4, k = 4;
  Dtype a = Dtype::kF32, b = Dtype::kF32, d = Dtype::kF32;
  bool is_a_transposed = false, is_b_transposed = false;
  std::uint32_t batch = 1;
  bool repeats_a = false, repeats_b = false;  // batch stride 0
  bool is_interleaved = false;                // matrices of D lie side by side in a row
  std::uint64_t padding = 0;                  // elements behind each row
  float alpha = 1, beta = 0;
  bool is_c_apart = false;
  bool has_bias = false;
  Dtype bias = Dtype::kF32;
  Activation activation = Activation::kNone;
  bool is_one_arena = false;  // all operands in one allocation
  std::uint64_t seed = 1;
  std::uint64_t device = 1;

  [[nodiscard]] std::string text() const {
    return "m " + std::to_string(m) + " n " + std::to_string(n) + " k " + std::to_string(k) + " " +
           std::string(to_string(a)) + (is_a_transposed ? "^T x " : " x ") +
           std::string(to_string(b)) + (is_b_transposed ? "^T -> " : " -> ") +
           std::string(to_string(d)) + " batch " + std::to_string(batch) + " padding " +
           std::to_string(padding) + " alpha " + std::to_string(alpha) + " beta " +
           std::to_string(beta) + (is_c_apart ? " apart" : "") + (has_bias ? " bias " : "") +
           std::string(to_string(activation));
  }
};

// A problem in poisoned memory with its expected result.
class TestProblem {
 public:
  GemmProblem problem;

  explicit TestProblem(const GemmCase& c) : case_(c), random_(c.seed) {
    problem.op = "test product";
    problem.batch = c.batch;
    problem.alpha = c.alpha;
    problem.beta = c.beta;
    problem.epilogue.activation = c.activation;
    problem.a = shape(c.is_a_transposed ? c.k : c.m, c.is_a_transposed ? c.m : c.k, c.a);
    problem.b = shape(c.is_b_transposed ? c.n : c.k, c.is_b_transposed ? c.k : c.n, c.b);
    problem.d = shape(c.m, c.n, c.d);
    problem.a.transposed = c.is_a_transposed;
    problem.b.transposed = c.is_b_transposed;
    if (c.repeats_a) problem.a.batch_stride = 0;
    if (c.repeats_b) problem.b.batch_stride = 0;
    if (c.is_interleaved) {
      problem.d.batch_stride = c.n + c.padding;
      problem.d.row_stride = c.batch * problem.d.batch_stride;
    }
    problem.c = problem.d;
    Operand bias{.rows = 1, .cols = c.n, .row_stride = c.n, .dtype = c.bias};
    std::vector<Operand*> operands = {&problem.a, &problem.b, &problem.d};
    if (c.beta != 0 && c.is_c_apart) operands.push_back(&problem.c);
    if (c.has_bias) operands.push_back(&bias);
    allocate(operands);
    if (!c.is_c_apart || c.beta == 0) problem.c = problem.d;
    fill(problem.a, c.batch);
    fill(problem.b, c.batch);
    if (c.beta != 0) fill(problem.c, c.batch);
    if (c.has_bias) {
      fill(bias, 1);
      problem.epilogue.bias = Bias{bias.memory, bias.offset, bias.dtype};
    }
    bias_ = bias;
    compute();
    before_ = bytes_of_d();
  }

  // D as the bytes that it has now, all of its allocation.
  [[nodiscard]] std::vector<std::byte> bytes_of_d() const {
    const auto& memory = static_cast<const HostAllocation&>(*problem.d.memory);
    return {memory.data(), memory.data() + memory.bytes()};
  }

  // D's elements only, in order, whatever its layout.
  [[nodiscard]] std::vector<double> result() const {
    std::vector<double> values;
    for_each_result(
        [&](std::size_t, const std::byte* at) { values.push_back(load(problem.d.dtype, at)); });
    return values;
  }

  // D's memory as it was before the product: for a second run of the same problem.
  void restore() {
    const auto& memory = static_cast<const HostAllocation&>(*problem.d.memory);
    std::memcpy(memory.data(), before_.data(), before_.size());
  }

  // Every element within its bound, and no other byte of D's allocation changed.
  [[nodiscard]] testing::AssertionResult is_right() const {
    std::vector<std::byte> now = bytes_of_d();
    double largest = 0;
    std::string wrong;
    for_each_result([&](std::size_t i, const std::byte* at) {
      const double got = load(problem.d.dtype, at);
      largest = std::max(largest, std::abs(expected_[i]));
      if (!(std::abs(got - expected_[i]) <= bound_[i]) && wrong.empty()) {
        wrong = "element " + std::to_string(i) + ": " + std::to_string(got) + ", expected " +
                std::to_string(expected_[i]) + " within " + std::to_string(bound_[i]);
      }
      const auto offset = static_cast<std::size_t>(
          at - static_cast<const HostAllocation&>(*problem.d.memory).data());
      std::memcpy(now.data() + offset, before_.data() + offset, size_of(problem.d.dtype));
    });
    if (!wrong.empty()) return testing::AssertionFailure() << case_.text() << ": " << wrong;
    if (now != before_) {
      return testing::AssertionFailure() << case_.text() << ": bytes outside of D were written";
    }
    // A reference of zeros would accept a kernel that does nothing.
    if (!expected_.empty() && largest < 1e-3 && case_.k != 0 && case_.alpha != 0) {
      return testing::AssertionFailure() << case_.text() << ": the reference is nearly zero";
    }
    return testing::AssertionSuccess();
  }

 private:
  static constexpr std::uint64_t kGuardBytes = 512;

  [[nodiscard]] Operand shape(std::uint64_t rows, std::uint64_t cols, Dtype dtype) const {
    Operand operand{.rows = rows, .cols = cols, .row_stride = cols + case_.padding, .dtype = dtype};
    operand.batch_stride = rows * operand.row_stride + case_.padding;
    return operand;
  }

  [[nodiscard]] static std::uint64_t span(const Operand& o, std::uint32_t batch) {
    if (o.rows == 0 || o.cols == 0 || batch == 0) return 0;
    return position(o, batch - 1, o.rows - 1, o.cols - 1) + size_of(o.dtype);
  }

  void allocate(const std::vector<Operand*>& operands) {
    std::uint64_t end = 0;
    for (Operand* operand : operands) {
      const std::uint64_t start = case_.is_one_arena ? end : 0;
      operand->offset = start + kGuardBytes;
      const std::uint64_t bytes = operand->offset + span(*operand, case_.batch) + kGuardBytes;
      end = (bytes + 255) / 256 * 256;
      if (!case_.is_one_arena) operand->memory = poisoned(case_.device, bytes);
    }
    if (!case_.is_one_arena) return;
    const AllocationRef arena = poisoned(case_.device, end);
    for (Operand* operand : operands) operand->memory = arena;
  }

  void fill(const Operand& operand, std::uint32_t batch) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    const std::uint32_t matrices = operand.batch_stride == 0 ? std::min(batch, 1u) : batch;
    for (std::uint64_t b = 0; b < matrices; ++b) {
      for (std::uint64_t r = 0; r < operand.rows; ++r) {
        for (std::uint64_t c = 0; c < operand.cols; ++c)
          store(operand.dtype, data_of(operand) + position(operand, b, r, c), uniform(random_));
      }
    }
  }

  [[nodiscard]] static double at(const Operand& o, std::uint64_t b, std::uint64_t r,
                                 std::uint64_t c) {
    return o.transposed ? load(o.dtype, data_of(o) + position(o, b, c, r))
                        : load(o.dtype, data_of(o) + position(o, b, r, c));
  }

  // op(X) of matrix `b` as doubles, `major` by `minor`: rows of A, columns of B.
  [[nodiscard]] std::vector<double> unpack(const Operand& o, std::uint64_t b, std::uint64_t major,
                                           std::uint64_t minor, bool is_a) const {
    std::vector<double> values(major * minor);
    for (std::uint64_t i = 0; i < major; ++i) {
      for (std::uint64_t j = 0; j < minor; ++j)
        values[i * minor + j] = is_a ? at(o, b, i, j) : at(o, b, j, i);
    }
    return values;
  }

  void compute() {
    const bool has_product = case_.alpha != 0;
    const auto alpha = static_cast<double>(case_.alpha);
    for (std::uint64_t b = 0; b < case_.batch; ++b) {
      const std::uint64_t k = has_product ? case_.k : 0;
      const auto rows = unpack(problem.a, b, case_.m, k, true);
      const auto columns = unpack(problem.b, b, case_.n, k, false);
      for (std::uint64_t r = 0; r < case_.m; ++r) {
        for (std::uint64_t c = 0; c < case_.n; ++c) {
          double sum = 0;
          double magnitude = 0;
          const double* x = rows.data() + r * k;
          const double* y = columns.data() + c * k;
          for (std::uint64_t i = 0; i < k; ++i) {
            sum += x[i] * y[i];
            magnitude += std::abs(x[i] * y[i]);
          }
          expect(b, r, c, alpha * sum, std::abs(alpha) * magnitude);
        }
      }
    }
  }

  // What follows the product, and how far the result may be from it.
  void expect(std::uint64_t b, std::uint64_t r, std::uint64_t c, double x, double magnitude) {
    const double ulp = problem.d.dtype == Dtype::kF32   ? 0x1p-23
                       : problem.d.dtype == Dtype::kF16 ? 0x1p-10
                                                        : 0x1p-7;
    const auto add = [&](double term) {
      x += term;
      magnitude += std::abs(term);
    };
    if (case_.beta != 0) add(static_cast<double>(case_.beta) * at(problem.c, b, r, c));
    if (case_.has_bias) add(at(bias_, 0, 0, c));
    expected_.push_back(activate(case_.activation, x));
    // k + 4 roundings of f32, an activation whose slope is below 1.2 and whose own error is a few
    // ulps, and the rounding of the result (half an ulp; subnormal halves 2^-25).
    bound_.push_back(1.2 * (static_cast<double>(case_.k) + 4) * 0x1p-24 * magnitude +
                     (case_.activation == Activation::kNone ? 0 : 0x1p-21 * (1 + std::abs(x))) +
                     0.51 * ulp * std::abs(expected_.back()) + 0x1p-25);
  }

  template <class F>
  void for_each_result(F&& f) const {
    std::size_t i = 0;
    for (std::uint64_t b = 0; b < case_.batch; ++b) {
      for (std::uint64_t r = 0; r < case_.m; ++r) {
        for (std::uint64_t c = 0; c < case_.n; ++c)
          f(i++, data_of(problem.d) + position(problem.d, b, r, c));
      }
    }
  }

  const GemmCase case_;
  std::mt19937_64 random_;
  Operand bias_;
  std::vector<double> expected_;
  std::vector<double> bound_;
  std::vector<std::byte> before_;
};

}  // namespace tern::backend::test
