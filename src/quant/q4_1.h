// Q4_1: 32 weights of 4 bits with a scale and a minimum, 20 bytes, 5 bits per weight.
#pragma once

#include "quant/block_bytes.h"

namespace tern::quant {

//   bytes 0-1   scale d, IEEE half, little endian
//   bytes 2-3   minimum m, IEEE half, little endian
//   bytes 4-19  byte 4 + i holds weight i in its low and weight i + 16 in its high four bits
// weight = q * d + m, q = 0..15
struct Q4_1 {
  static constexpr int kGroup = 32;
  static constexpr std::size_t kBytes = 20;

  std::uint16_t scale_bits;
  std::uint16_t minimum_bits;
  std::uint8_t nibbles[16];

  [[nodiscard]] static float scale(const std::byte* block) { return load_half(block); }
  [[nodiscard]] static float minimum(const std::byte* block) { return load_half(block + 2); }

  static void decode_block(const std::byte* block, float* out) {
    const float d = scale(block);
    const float m = minimum(block);
    for (int i = 0; i < 16; ++i) {
      const int byte = load_u8(block + 4 + i);
      out[i] = static_cast<float>(byte & 15) * d + m;
      out[i + 16] = static_cast<float>(byte >> 4) * d + m;
    }
  }

  // d = (max - min) / 15, m = min. False if d does not fit a half or m is beyond its range.
  [[nodiscard]] static bool encode(const float* x, std::byte* block) {
    if (std::isnan(max_abs(x, kGroup))) return false;
    float low = x[0];
    float high = x[0];
    for (int i = 1; i < kGroup; ++i) {
      if (x[i] < low) low = x[i];
      if (x[i] > high) high = x[i];
    }
    if (!(std::fabs(low) <= 65504.0F)) return false;
    const float d = (high - low) / 15.0F;
    if (!store_scale(d, block)) return false;
    store_u16(block + 2, float_to_half(low));
    const auto code = [d, low](float v) {
      if (d == 0.0F) return 0;
      const int q = static_cast<int>(std::round((v - low) / d));
      return q > 15 ? 15 : q;
    };
    for (int i = 0; i < 16; ++i) {
      block[4 + i] = static_cast<std::byte>(code(x[i]) | code(x[i + 16]) << 4);
    }
    return true;
  }
};
static_assert(sizeof(Q4_1) == Q4_1::kBytes);

}  // namespace tern::quant
