// Vectors, SIMD-group functions, matrices and atomics of the shim against references.
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "runner.h"

namespace swmetal_test {
namespace {

using Vectors = Runner;

TEST_F(Vectors, ConstructConvertAndSwizzleAsInMetal) {
  std::vector<float> o(35, -1.0f);
  bind(0, o);
  ASSERT_EQ(run("vectors", {1, 1, 1}, {1, 1, 1}), "");
  const float want[] = {5,
                        3,
                        4,
                        7,
                        1.0f /* 1.0008 where half would not round each time */,
                        1.0f / 3 * 0.1f,
                        2,
                        44,
                        4 + 2,
                        6000 + 100 + 40 + 5,
                        4 + 1 + 2,
                        4 + 8,
                        1 + 1,
                        9 % 4 + 6 + ~5,
                        4 - 0.5f - 2,
                        9,
                        4,
                        1 + 2 + 4,
                        16 + 12 + 32 + 8,
                        2 + 8,
                        6,
                        8 + 2,
                        9 + 6 + 8 + 4,
                        31,
                        3.5f,
                        3,
                        -1,
                        4,
                        71,
                        2 + 12,
                        8,
                        1,
                        5,
                        4,
                        1};
  for (size_t i = 0; i < o.size(); i++) EXPECT_EQ(o[i], want[i]) << "cell " << i;
}

class Simd : public Runner {
 protected:
  std::vector<int> run_rows(const std::string& kernel, unsigned threads, unsigned rows) {
    for (unsigned i = 0; i < 32; i++) in.push_back(static_cast<int>(i * 7 % 13));
    std::vector<int> out(rows * 32, -1);
    bind(0, in), bind(1, out);
    EXPECT_EQ(run(kernel, {threads, 1, 1}, {threads, 1, 1}), "");
    return out;
  }
  std::vector<int> in;
};

TEST_F(Simd, Collectives) {
  for (const unsigned n : {32u, 20u, 1u}) {
    in.clear();
    const std::vector<int> out = run_rows("simd_functions", n, 19);
    const std::vector<int> v(in.begin(), in.begin() + n);
    const auto fold = [&](int start, auto f) {
      return std::accumulate(v.begin(), v.end(), start, f);
    };
    int product = 1, ballot = 0, before = 0, product_before = 1;
    for (unsigned i = 0; i < n; i++) {
      product =
          static_cast<int>(static_cast<unsigned>(product) * static_cast<unsigned>(v[i] % 3 + 1));
      ballot |= (v[i] % 2) << i;
    }
    for (unsigned i = 0; i < n; i++) {
      const int factor = 1 + static_cast<int>(i % 2);
      const std::vector<int> want = {
          fold(0, std::plus<>()),
          product,
          fold(-1, [](int a, int b) { return std::max(a, b); }),
          fold(99, [](int a, int b) { return std::min(a, b); }),
          fold(-1, [](int a, int b) { return a & (b | 8); }),
          fold(0, std::bit_or<>()),
          fold(0, std::bit_xor<>()),
          before + v[i],
          before,
          product_before * factor,
          product_before,
          n > 5 ? in[5] : out[11 * 32 + i],  // lane 5 is not there: see below
          v[0],
          n > 3,
          1,
          ballot,
          static_cast<int>(n == 32 ? 0xffffffffu : (1u << n) - 1),
          i == 0,
          static_cast<int>(n)};
      for (size_t row = 0; row < want.size(); row++)
        EXPECT_EQ(out[row * 32 + i], want[row]) << "row " << row << " lane " << i << " of " << n;
      before += v[i];
      product_before *= factor;
    }
    if (n == 20) break;  // with one lane simd_broadcast of lane 5 fails; Refusals has it
  }
}

TEST_F(Simd, Shuffles) {
  const std::vector<int> out = run_rows("simd_shuffles", 32, 9);
  for (int i = 0; i < 32; i++) {
    const auto at = [&](int k) { return in[static_cast<size_t>(k)]; };
    const int want[] = {at(31 - i),
                        at(i ^ 5),
                        i + 3 < 32 ? at(i + 3) : at(i),
                        i >= 3 ? at(i - 3) : at(i),
                        at((i + 3) % 32),
                        at((i + 29) % 32),
                        i + 3 < 32 ? at(i + 3) : -at(i + 3 - 32),
                        i >= 3 ? at(i - 3) : -at(i - 3 + 32),
                        -at(31 - i)};
    for (int row = 0; row < 9; row++)
      EXPECT_EQ(out[static_cast<size_t>(row * 32 + i)], want[row])
          << "row " << row << " lane " << i;
  }
}

// A bfloat of a whole number that needs no rounding.
struct Bfloat {
  explicit Bfloat(float x = 0)
      : bits(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16)) {}
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  std::uint16_t bits;
};

class Matrices : public Runner {
 protected:
  template <class T>
  void check(const std::string& kernel) {
    std::vector<T> a(100), b(120);
    for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<T>(static_cast<float>(i % 7) - 3.0f);
    for (size_t i = 0; i < b.size(); i++) b[i] = static_cast<T>(static_cast<float>(i % 5) - 2.0f);
    std::vector<float> out(256, NAN);
    bind(0, a), bind(1, b), bind(2, out);
    ASSERT_EQ(run(kernel, {32, 1, 1}, {32, 1, 1}), "");
    for (size_t i = 0; i < 8; i++)
      for (size_t j = 0; j < 8; j++) {
        float plain = 1, transposed = 0;
        for (size_t k = 0; k < 8; k++) {
          const auto right = static_cast<float>(b[(k + 2) * 10 + j + 1]);
          plain += static_cast<float>(a[i * 10 + k]) * right;
          transposed += static_cast<float>(a[k * 10 + i]) * right;
        }
        EXPECT_EQ(out[i * 8 + j], plain);
        EXPECT_EQ(out[64 + j * 8 + i], transposed) << "stored transposed";
        EXPECT_EQ(out[128 + i * 8 + j], i == j ? 3.0f : 0.0f);
        // Lane l holds row (l/4 & 4) + l/2 % 4, columns from (l/4 & 2) * 2 + l % 2 * 2.
        const size_t lane = (i / 4) * 16 + (j / 4) * 8 + (i % 4) * 2 + (j % 4) / 2;
        EXPECT_EQ(out[192 + i * 8 + j], static_cast<float>(2 * lane + j % 2));
      }
  }
};

TEST_F(Matrices, OfFloatHalfAndBfloat) {
  check<float>("matrices_float");
  check<_Float16>("matrices_half");
  check<Bfloat>("matrices_bfloat");
}

using Atomics = Runner;

TEST_F(Atomics, CountEveryThread) {
  options.workers = 2;
  const unsigned n = 640;
  std::vector<unsigned> o = {0, n, 0, ~0u, 0, ~0u, 0, 0, 0, 0};
  std::vector<int> s = {0};
  std::vector<float> f = {0};
  bind(0, o), bind(1, s), bind(2, f);
  ASSERT_EQ(run("atomics", {n, 1, 1}, {64, 1, 1}), "");
  unsigned parity = 0;
  for (unsigned i = 0; i < n; i++) parity ^= i;
  const std::vector<unsigned> want = {n,      0, n - 1, 7,    (1u << 20) - 1, ~((1u << 20) - 1),
                                      parity, 1, 1,     2 * n};
  EXPECT_EQ(o, want);
  EXPECT_EQ(s[0], 1 - static_cast<int>(n));
  EXPECT_EQ(f[0], static_cast<float>(n) / 2);
}

}  // namespace
}  // namespace swmetal_test
