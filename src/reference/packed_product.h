// Product of one packed weight row with one quantised activation row, written from the formula: the
// oracle of every kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern::reference {

// I(g) = sum over k in weight group g of code(k) * q(k). codes are what multiplies the scale (-1,
// 0, 1, 2), one per input; integers has codes.size() / group elements, group is 64 or 128 (a block
// of 256 weights counts as two of 128).
void packed_integers(std::span<const std::int8_t> codes, std::span<const std::int16_t> q,
                     std::size_t group, std::span<std::int32_t> integers);

// The sum of I(g) * d(g) * a(group of g) in the canonical order: p = d * a rounded to f32; per
// chunk of 512 inputs acc = fma(float(I), p, acc) from 0 with groups ascending; chunk sums added in
// ascending order. scales has one d per weight group, a one per 128 inputs.
[[nodiscard]] float packed_product(std::span<const std::int32_t> integers,
                                   std::span<const float> scales, std::span<const float> a,
                                   std::size_t group);

}  // namespace tern::reference
