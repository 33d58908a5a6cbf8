// Q8_0: 32 weights of 8 bits with one scale, 34 bytes, 8.5 bits per weight.
#pragma once

#include "quant/block_bytes.h"

namespace tern::quant {

//   bytes 0-1   scale d, IEEE half, little endian
//   bytes 2-33  byte 2 + j is weight j as a signed number q
// weight = q * d, q = -128..127 (writers use -127..127)
struct Q8_0 {
  static constexpr int kGroup = 32;
  static constexpr std::size_t kBytes = 34;

  std::uint16_t scale_bits;
  std::int8_t q[32];

  [[nodiscard]] static float scale(const std::byte* block) { return load_half(block); }

  static void decode_block(const std::byte* block, float* out) {
    const float d = scale(block);
    for (int j = 0; j < kGroup; ++j) {
      out[j] = static_cast<float>(static_cast<std::int8_t>(load_u8(block + 2 + j))) * d;
    }
  }

  // d = max |x| / 127. False if d does not fit a half.
  [[nodiscard]] static bool encode(const float* x, std::byte* block) {
    const float d = max_abs(x, kGroup) / 127.0F;
    if (!store_scale(d, block)) return false;
    for (int j = 0; j < kGroup; ++j) {
      // |x / d| <= 127 but for the rounding of d, which stays far from 127.5
      const int q = d == 0.0F ? 0 : static_cast<int>(std::round(x[j] / d));
      block[2 + j] = static_cast<std::byte>(static_cast<std::int8_t>(q));
    }
    return true;
  }
};
static_assert(sizeof(Q8_0) == Q8_0::kBytes);

}  // namespace tern::quant
