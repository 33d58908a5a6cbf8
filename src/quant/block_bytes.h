// Little-endian fields of blocks that lie at any address in a mapped file.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace tern::quant {

static_assert(std::endian::native == std::endian::little,
              "blocks are read as they lie in the file");

[[nodiscard]] inline std::uint8_t load_u8(const std::byte* at) {
  return std::to_integer<std::uint8_t>(*at);
}
[[nodiscard]] inline std::uint16_t load_u16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
inline void store_u16(std::byte* at, std::uint16_t value) { std::memcpy(at, &value, sizeof value); }

[[nodiscard]] inline float load_half(const std::byte* at) { return half_to_float(load_u16(at)); }

// Writes d as a half, rounded to nearest even. False, and nothing written, where the block would
// decode to infinity or NaN (d beyond 65504) or to nothing (d is not 0 but its half is).
[[nodiscard]] inline bool store_scale(float d, std::byte* at) {
  if (!(std::fabs(d) <= 65504.0F)) return false;
  const std::uint16_t bits = float_to_half(d);
  if (d != 0.0F && (bits & 0x7fffU) == 0) return false;
  store_u16(at, bits);
  return true;
}

// The largest magnitude of x[0..count); NaN if any x is.
[[nodiscard]] inline float max_abs(const float* x, int count) {
  float largest = 0.0F;
  for (int i = 0; i < count; ++i) {
    const float a = std::fabs(x[i]);
    if (std::isnan(a)) return a;
    if (a > largest) largest = a;
  }
  return largest;
}

// Code of a three-valued weight: x / d rounded half away from zero, in -1..1. d >= |x|, d is the
// unrounded scale.
[[nodiscard]] inline int ternary_code(float x, float d) {
  return d == 0.0F ? 0 : static_cast<int>(std::round(x / d));
}

}  // namespace tern::quant
