// Rows of any weight format to floats, to integer codes, and back: the scalar truth that kernels
// are compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.h"
#include "quant/format.h"

namespace tern::quant {

// `count` is a multiple of info(format).group; `bytes` holds bytes_for(format, count) bytes at any
// alignment.

void decode_row(Format format, const std::byte* bytes, std::int64_t count, float* out);

// Packed formats only. One code per weight (binary -1 and +1; ternary and 2-bit -1..2) and one
// scale per group as the bits of a half: weight j = codes[j] * scales[j / group].
void decode_codes_row(Format format, const std::byte* bytes, std::int64_t count, std::int8_t* codes,
                      std::uint16_t* scales);

// The error names the first group whose scale does not fit a half (too large, too small, or not a
// number) and the row is then to be thrown away. Dense formats fail only where a finite value would
// become infinite.
[[nodiscard]] Result<void> encode_row(Format format, const float* x, std::int64_t count,
                                      std::byte* bytes);

// The first block of consecutive rows whose scale (or minimum) is infinite or NaN; dense formats
// have none.
[[nodiscard]] std::optional<std::int64_t> first_bad_scale(Format format,
                                                          std::span<const std::byte> bytes);
// What is wrong with the block that first_bad_scale found: true for NaN, false for Inf.
[[nodiscard]] bool scale_is_nan(Format format, const std::byte* block);

}  // namespace tern::quant
