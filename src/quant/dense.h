// Dense weights: F32, F16 and BF16, one weight per block, as they lie in files.
#pragma once

#include "quant/block_bytes.h"

namespace tern::quant {

// IEEE single, 4 bytes, little endian.
struct F32 {
  static constexpr int kGroup = 1;
  static constexpr std::size_t kBytes = 4;

  static void decode_block(const std::byte* block, float* out) {
    std::memcpy(out, block, sizeof *out);
  }
  [[nodiscard]] static bool encode(const float* x, std::byte* block) {
    std::memcpy(block, x, sizeof *x);
    return true;
  }
};

// IEEE half, 2 bytes, little endian. A finite value that would become infinite is refused; small
// ones may become 0.
struct F16 {
  static constexpr int kGroup = 1;
  static constexpr std::size_t kBytes = 2;

  static void decode_block(const std::byte* block, float* out) { *out = load_half(block); }
  [[nodiscard]] static bool encode(const float* x, std::byte* block) {
    const std::uint16_t bits = float_to_half(*x);
    if (std::isfinite(*x) && (bits & 0x7fffU) == 0x7c00U) return false;
    store_u16(block, bits);
    return true;
  }
};

// The upper half of an IEEE single, 2 bytes, little endian; written with rounding to nearest even.
struct Bf16 {
  static constexpr int kGroup = 1;
  static constexpr std::size_t kBytes = 2;

  static void decode_block(const std::byte* block, float* out) {
    *out = bf16_to_float(load_u16(block));
  }
  [[nodiscard]] static bool encode(const float* x, std::byte* block) {
    const std::uint16_t bits = float_to_bf16(*x);
    if (std::isfinite(*x) && (bits & 0x7fffU) == 0x7f80U) return false;
    store_u16(block, bits);
    return true;
  }
};

}  // namespace tern::quant
