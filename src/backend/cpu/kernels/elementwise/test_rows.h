// What the kernel tests share: rows with guards around them, random values, and distances.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace tern::cpu::testing {

// A NaN with a payload of its own, so that a guard cannot be written by accident.
inline constexpr std::uint32_t kGuardBits = 0x7FC0DEAD;

// [rows][width] floats with `stride` floats from row to row and guards before, between and behind.
// Everything starts as guard, so outputs are poisoned with NaN.
class Rows {
 public:
  Rows(int rows, std::int64_t width, std::int64_t extra = 5)
      : rows_(rows), width_(width), stride_(width + extra) {
    values_.assign(static_cast<std::size_t>((rows + 2) * stride_),
                   std::bit_cast<float>(kGuardBits));
  }

  [[nodiscard]] float* data() { return values_.data() + stride_; }
  [[nodiscard]] const float* data() const { return values_.data() + stride_; }
  [[nodiscard]] float* row(int r) { return data() + r * stride_; }
  [[nodiscard]] const float* row(int r) const { return data() + r * stride_; }
  [[nodiscard]] std::int64_t stride() const { return stride_; }
  [[nodiscard]] std::int64_t width() const { return width_; }
  [[nodiscard]] int rows() const { return rows_; }

  void fill_normal(std::uint32_t seed, float scale = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, scale);
    for (int r = 0; r < rows_; ++r) {
      for (std::int64_t c = 0; c < width_; ++c) row(r)[c] = normal(random);
    }
  }

  // Every float outside of [0, rows) x [0, width) still has the guard's bits.
  [[nodiscard]] ::testing::AssertionResult guards_are_intact() const {
    const auto size = static_cast<std::int64_t>(values_.size());
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t r = i / stride_ - 1;
      const bool inside = r >= 0 && r < rows_ && i % stride_ < width_;
      const auto bits = std::bit_cast<std::uint32_t>(values_[static_cast<std::size_t>(i)]);
      if (!inside && bits != kGuardBits) {
        return ::testing::AssertionFailure() << "row " << r << ", column " << i % stride_;
      }
    }
    return ::testing::AssertionSuccess();
  }

 private:
  int rows_;
  std::int64_t width_;
  std::int64_t stride_;
  std::vector<float> values_;
};

[[nodiscard]] inline ::testing::AssertionResult same_bits(const float* a, const float* b,
                                                          std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) {
      return ::testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// Distance in units of the last place; NaN is 0 from NaN and infinitely far from the rest.
[[nodiscard]] inline double ulp_distance(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : HUGE_VAL;
  const auto place = [](float x) {
    const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU);
    return std::signbit(x) ? -bits : bits;
  };
  return std::fabs(static_cast<double>(place(a) - place(b)));
}

}  // namespace tern::cpu::testing
