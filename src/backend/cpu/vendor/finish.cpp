// Epilogue of a tile, a strip of 128 columns at a time.
#include "backend/cpu/vendor/finish.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/half.h"

namespace tern::cpu {

namespace {

constexpr std::int64_t kStrip = 128;
using Strip = std::array<float, kStrip>;

void load_strip(Dtype dtype, const std::byte* from, std::int64_t count, Strip& to) {
  if (dtype == Dtype::kF32) {
    std::memcpy(to.data(), from, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  std::array<std::uint16_t, kStrip> bits;
  std::memcpy(bits.data(), from, static_cast<std::size_t>(count) * sizeof(std::uint16_t));
  for (std::size_t j = 0; j < static_cast<std::size_t>(count); ++j)
    to[j] = dtype == Dtype::kF16 ? half_to_float(bits[j]) : bf16_to_float(bits[j]);
}

void store_strip(Dtype dtype, const Strip& from, std::int64_t count, std::byte* to) {
  if (dtype == Dtype::kF32) {
    std::memcpy(to, from.data(), static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  std::array<std::uint16_t, kStrip> bits;
  for (std::size_t j = 0; j < static_cast<std::size_t>(count); ++j)
    bits[j] = dtype == Dtype::kF16 ? float_to_half(from[j]) : float_to_bf16(from[j]);
  std::memcpy(to, bits.data(), static_cast<std::size_t>(count) * sizeof(std::uint16_t));
}

float activate(backend::Activation activation, float x) {
  switch (activation) {
    case backend::Activation::kNone:
      return x;
    case backend::Activation::kRelu:
      // A NaN stays one.
      return x < 0.0f ? 0.0f : x;
    case backend::Activation::kSilu:
      return x / (1.0f + std::exp(-x));
    case backend::Activation::kGeluErf:
      return 0.5f * x * (1.0f + std::erf(x / std::numbers::sqrt2_v<float>));
    case backend::Activation::kGeluTanh: {
      constexpr float kScale = 0.797884560802865356f;  // sqrt(2 / pi)
      return 0.5f * x * (1.0f + std::tanh(kScale * (x + 0.044715f * x * x * x)));
    }
  }
  return x;
}

}  // namespace

void finish_tile(const FinishArgs& x) noexcept {
  const auto element = static_cast<std::int64_t>(size_of(x.dtype));
  const auto bias_element = static_cast<std::int64_t>(size_of(x.bias_dtype));
  Strip values;
  Strip other;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t j = 0; j < x.columns; j += kStrip) {
      const std::int64_t count = std::min(kStrip, x.columns - j);
      const auto n = static_cast<std::size_t>(count);
      if (x.sums != nullptr) {
        std::memcpy(values.data(), x.sums + r * x.sums_row_stride + j, n * sizeof(float));
      } else {
        values.fill(0.0f);
      }
      if (x.c != nullptr) {
        load_strip(x.dtype, x.c + (r * x.c_row_stride + j) * element, count, other);
        for (std::size_t i = 0; i < n; ++i) values[i] += x.beta * other[i];
      }
      if (x.bias != nullptr) {
        load_strip(x.bias_dtype, x.bias + j * bias_element, count, other);
        for (std::size_t i = 0; i < n; ++i) values[i] += other[i];
      }
      if (x.activation != backend::Activation::kNone) {
        for (std::size_t i = 0; i < n; ++i) values[i] = activate(x.activation, values[i]);
      }
      store_strip(x.dtype, values, count, x.d + (r * x.d_row_stride + j) * element);
    }
  }
}

}  // namespace tern::cpu
