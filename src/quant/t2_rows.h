// The 2-bit codes that Q2_0 and PQ2_0 share: scale first, then four consecutive weights per byte.
#pragma once

#include "quant/block_bytes.h"

namespace tern::quant {

//   bytes 0-1   scale d, IEEE half, little endian
//   bytes 2-    weight j is bits 2 * (j % 4) of byte 2 + j / 4
// weight = (c - 1) * d, c = 0..3. Ternary writers never use c = 3; it is +2d and not clamped.
template <int Group>
struct T2Consecutive {
  static constexpr int kGroup = Group;
  static constexpr std::size_t kBytes = 2 + Group / 4;
  static constexpr std::size_t kScaleAt = 0;

  std::uint16_t scale_bits;
  std::uint8_t codes[Group / 4];

  [[nodiscard]] static float scale(const std::byte* block) { return load_half(block + kScaleAt); }

  // -1, 0, 1, 2
  static void decode_codes(const std::byte* block, std::int8_t* out) {
    for (int j = 0; j < kGroup; ++j) {
      const int c = load_u8(block + 2 + j / 4) >> (2 * (j % 4)) & 3;
      out[j] = static_cast<std::int8_t>(c - 1);
    }
  }

  static void decode_block(const std::byte* block, float* out) {
    const float d = scale(block);
    for (int j = 0; j < kGroup; ++j) {
      const int c = load_u8(block + 2 + j / 4) >> (2 * (j % 4)) & 3;
      out[j] = static_cast<float>(c - 1) * d;
    }
  }

  // d = max |x|; codes from the unrounded d. False if d does not fit a half.
  [[nodiscard]] static bool encode(const float* x, std::byte* block) {
    const float d = max_abs(x, kGroup);
    if (!store_scale(d, block + kScaleAt)) return false;
    for (int i = 0; i < kGroup / 4; ++i) {
      int byte = 0;
      for (int k = 0; k < 4; ++k) byte |= (ternary_code(x[4 * i + k], d) + 1) << (2 * k);
      block[2 + i] = static_cast<std::byte>(byte);
    }
    return true;
  }
};

}  // namespace tern::quant
