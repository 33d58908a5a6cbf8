// Quantisation of activations to 12-bit integers, one row, written from the formula: the oracle of
// every kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern::reference {

// Inputs that share one scale; the last group of a row may be shorter.
inline constexpr std::size_t kI12Group = 128;

// Per group of 128 inputs: amax = max |x|. amax < 2^-100: a = 0, q = 0. A NaN or Inf in the group:
// a = NaN, q = 0. Else a = amax / 2047, r = 2047 / amax, q = rint(x * r) with ties to even, clamped
// to +-2047; f32 throughout. q has x.size() elements, a one per started group.
void quantize_i12(std::span<const float> x, std::span<std::int16_t> q, std::span<float> a);

}  // namespace tern::reference
