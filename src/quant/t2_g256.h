// TQ2_0: 2-bit codes in groups of 256 with one scale, 66 bytes, 2.0625 bits per weight.
#pragma once

#include "quant/block_bytes.h"

namespace tern::quant {

//   bytes 0-63   weight 128 * g + 32 * l + m is bits 2 * l of byte 32 * g + m (g = 0..1, l = 0..3,
//   m = 0..31):
//                the weights of a byte are 32 apart, not consecutive
//   bytes 64-65  scale d, IEEE half, little endian
// weight = (c - 1) * d, c = 0..3. Ternary writers never use c = 3; it is +2d and not clamped.
struct T2G256 {
  static constexpr int kGroup = 256;
  static constexpr std::size_t kBytes = 66;
  static constexpr std::size_t kScaleAt = 64;

  std::uint8_t codes[64];
  std::uint16_t scale_bits;

  [[nodiscard]] static float scale(const std::byte* block) { return load_half(block + kScaleAt); }

  // -1, 0, 1, 2
  static void decode_codes(const std::byte* block, std::int8_t* out) {
    for (int j = 0; j < kGroup; ++j) {
      const int c = load_u8(block + byte_of(j)) >> shift_of(j) & 3;
      out[j] = static_cast<std::int8_t>(c - 1);
    }
  }

  static void decode_block(const std::byte* block, float* out) {
    const float d = scale(block);
    for (int j = 0; j < kGroup; ++j) {
      const int c = load_u8(block + byte_of(j)) >> shift_of(j) & 3;
      out[j] = static_cast<float>(c - 1) * d;
    }
  }

  // d = max |x|; codes from the unrounded d. False if d does not fit a half.
  [[nodiscard]] static bool encode(const float* x, std::byte* block) {
    const float d = max_abs(x, kGroup);
    if (!store_scale(d, block + kScaleAt)) return false;
    for (int i = 0; i < 64; ++i) {
      int byte = 0;
      for (int l = 0; l < 4; ++l) {
        const float v = x[128 * (i / 32) + 32 * l + i % 32];
        byte |= (ternary_code(v, d) + 1) << (2 * l);
      }
      block[i] = static_cast<std::byte>(byte);
    }
    return true;
  }

 private:
  static constexpr int byte_of(int j) { return 32 * (j / 128) + j % 32; }
  static constexpr int shift_of(int j) { return 2 * (j / 32 % 4); }
};
static_assert(sizeof(T2G256) == T2G256::kBytes);

}  // namespace tern::quant
