// Q4_0: 32 weights of 4 bits with one scale, 18 bytes, 4.5 bits per weight.
#pragma once

#include "quant/block_bytes.h"

namespace tern::quant {

//   bytes 0-1   scale d, IEEE half, little endian; any sign
//   bytes 2-17  byte 2 + i holds weight i in its low and weight i + 16 in its high four bits
// weight = (q - 8) * d, q = 0..15
struct Q4_0 {
  static constexpr int kGroup = 32;
  static constexpr std::size_t kBytes = 18;

  std::uint16_t scale_bits;
  std::uint8_t nibbles[16];

  [[nodiscard]] static float scale(const std::byte* block) { return load_half(block); }

  static void decode_block(const std::byte* block, float* out) {
    const float d = scale(block);
    for (int i = 0; i < 16; ++i) {
      const int byte = load_u8(block + 2 + i);
      out[i] = static_cast<float>((byte & 15) - 8) * d;
      out[i + 16] = static_cast<float>((byte >> 4) - 8) * d;
    }
  }

  // d = x / -8 of the weight of largest magnitude, so that this one is met by code 0. False if d
  // does not fit a half.
  [[nodiscard]] static bool encode(const float* x, std::byte* block) {
    if (std::isnan(max_abs(x, kGroup))) return false;
    float extreme = 0.0F;
    for (int i = 0; i < kGroup; ++i) {
      if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    }
    const float d = extreme == 0.0F ? 0.0F : extreme / -8.0F;
    if (!store_scale(d, block)) return false;
    const auto code = [d](float v) {
      if (d == 0.0F) return 8;
      const int q = static_cast<int>(std::round(v / d)) + 8;  // in 0..16: v / d is in -8..8
      return q > 15 ? 15 : q;
    };
    for (int i = 0; i < 16; ++i) {
      block[2 + i] = static_cast<std::byte>(code(x[i]) | code(x[i + 16]) << 4);
    }
    return true;
  }
};
static_assert(sizeof(Q4_0) == Q4_0::kBytes);

}  // namespace tern::quant
