// Q1_0: binary weights in groups of 128 with one scale, 18 bytes, 1.125 bits per weight.
#pragma once

#include "quant/block_bytes.h"

namespace tern::quant {

//   bytes 0-1   scale d, IEEE half, little endian; writers give d >= 0, readers take any value
//   bytes 2-17  sign bits: weight j is bit j % 8 of byte 2 + j / 8; 1 means +d, 0 means -d
// There is no zero weight; a zero row has d = 0.
struct Q1G128 {
  static constexpr int kGroup = 128;
  static constexpr std::size_t kBytes = 18;
  static constexpr std::size_t kScaleAt = 0;

  std::uint16_t scale_bits;
  std::uint8_t bits[16];

  [[nodiscard]] static float scale(const std::byte* block) { return load_half(block + kScaleAt); }

  // -1 and +1
  static void decode_codes(const std::byte* block, std::int8_t* codes) {
    for (int j = 0; j < kGroup; ++j) {
      const int bit = load_u8(block + 2 + j / 8) >> (j % 8) & 1;
      codes[j] = static_cast<std::int8_t>(2 * bit - 1);
    }
  }

  static void decode_block(const std::byte* block, float* out) {
    const float d = scale(block);
    for (int j = 0; j < kGroup; ++j) {
      out[j] = (load_u8(block + 2 + j / 8) >> (j % 8) & 1) != 0 ? d : -d;
    }
  }

  // d = mean of |x|, summed in order in float; the code is 1 where x >= 0 (-0 too). False if d does
  // not fit a half.
  [[nodiscard]] static bool encode(const float* x, std::byte* block) {
    float sum = 0.0F;
    for (int j = 0; j < kGroup; ++j) sum += std::fabs(x[j]);
    if (!store_scale(sum / kGroup, block + kScaleAt)) return false;
    for (int i = 0; i < kGroup / 8; ++i) {
      unsigned byte = 0;
      for (int b = 0; b < 8; ++b) {
        if (x[8 * i + b] >= 0.0F) byte |= 1U << b;
      }
      block[2 + i] = static_cast<std::byte>(byte);
    }
    return true;
  }
};
static_assert(sizeof(Q1G128) == Q1G128::kBytes);

}  // namespace tern::quant
