// linear: y = x W^T in f64 for dense and block formats, and the decoders of their weights.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/format.h"

namespace tern::reference {

// Weight `index` of a row of the file. Formats: kF32, kF16, kBf16, kQ4_0, kQ4_1, kQ8_0. The value
// is the f32 that code * scale (+ minimum) rounds to; for Q4_1 product and sum are rounded one
// after the other.
[[nodiscard]] float decode_weight(quant::Format format, const std::byte* row, std::int64_t index);

// A sum, and the sum of its absolute terms: a float sum of the same terms in any order differs from
// it by a small multiple of that.
struct LinearResult {
  double value = 0;
  double magnitude = 0;
};

// sum over k of x[k] * W[k], W being one row of the file.
[[nodiscard]] LinearResult linear_row(quant::Format format, const std::byte* row, const float* x,
                                      std::int64_t inputs);

}  // namespace tern::reference
