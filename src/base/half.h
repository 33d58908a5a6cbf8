// Scalar conversions between float and the two 16-bit floats, in integers only, so that no rounding
// or flush-to-zero mode of the processor changes a bit.
#pragma once

#include <bit>
#include <cstdint>

namespace tern {

// IEEE half to float: exact. A NaN keeps its payload and becomes quiet, as the processor's own
// conversion does.
[[nodiscard]] constexpr float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  // Subnormal: mantissa * 2^-24. The leading one moves to bit 10 and is dropped.
  const auto shift = static_cast<std::uint32_t>(std::countl_zero(mantissa)) - 21;
  return std::bit_cast<float>(sign | ((113 - shift) << 23) |
                              (((mantissa << shift) & 0x3ffu) << 13));
}

// float to IEEE half, to nearest, ties to even; too large becomes Inf, NaN stays a (quiet) NaN.
[[nodiscard]] constexpr std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t result = 0;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65,520 and above, Inf included
    result = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14, the smallest normal half
    // A carry out of the mantissa increments the exponent, which is right.
    result = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  } else if (magnitude > 0x33000000u) {  // above 2^-25, half of the smallest subnormal half
    const std::uint32_t shift = 126 - (magnitude >> 23);  // 14 to 24
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t rest = mantissa & ((1u << shift) - 1);
    const std::uint32_t tie = 1u << (shift - 1);
    result = mantissa >> shift;
    if (rest > tie || (rest == tie && (result & 1u) != 0)) ++result;
  }
  return static_cast<std::uint16_t>(sign | result);
}

// bfloat16 to float: exact, NaN payloads included.
[[nodiscard]] constexpr float bf16_to_float(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

// float to bfloat16, to nearest, ties to even; NaN stays a (quiet) NaN.
[[nodiscard]] constexpr std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace tern
