// Base-3 digits in bytes, as PTQ1_0 and TQ1_0 store them: digit 0 is the most significant.
#pragma once

#include "quant/block_bytes.h"

namespace tern::quant {

// Digit n = 0..4 of a byte: ((b * 3^n mod 256) * 3) >> 8. Only 243 byte values are canonical; all
// decode.
[[nodiscard]] constexpr int trit(unsigned byte, int n) {
  constexpr unsigned kPower[5] = {1, 3, 9, 27, 81};
  return static_cast<int>((byte * kPower[n] & 255U) * 3U >> 8U);
}

// The byte of a word of five digits, word = 81 * digit0 + ... + digit4 (four digits: times 3):
// 0..242.
[[nodiscard]] constexpr unsigned trit_byte(unsigned word) { return (256U * word + 242U) / 243U; }

// A run of `bytes` bytes with `digits` digits each: digit n of byte m is weight first + n * bytes +
// m.
struct TritRun {
  int byte;  // first byte in the block
  int bytes;
  int digits;
  int first;  // first weight
};

// A block of trit runs with its scale last.
//   weight = (digit - 1) * d
template <int Group, std::size_t Bytes, const TritRun (&Runs)[3]>
struct TritBlock {
  static constexpr int kGroup = Group;
  static constexpr std::size_t kBytes = Bytes;
  static constexpr std::size_t kScaleAt = Bytes - 2;

  std::uint8_t trits[Bytes - 2];
  std::uint8_t scale_bits[2];

  [[nodiscard]] static float scale(const std::byte* block) { return load_half(block + kScaleAt); }

  // -1, 0, 1
  static void decode_codes(const std::byte* block, std::int8_t* codes) {
    for (const TritRun& run : Runs) {
      for (int m = 0; m < run.bytes; ++m) {
        const unsigned byte = load_u8(block + run.byte + m);
        for (int n = 0; n < run.digits; ++n) {
          codes[run.first + n * run.bytes + m] = static_cast<std::int8_t>(trit(byte, n) - 1);
        }
      }
    }
  }

  static void decode_block(const std::byte* block, float* out) {
    std::int8_t codes[kGroup];
    decode_codes(block, codes);
    const float d = scale(block);
    for (int j = 0; j < kGroup; ++j) out[j] = static_cast<float>(codes[j]) * d;
  }

  // d = max |x|; digits from the unrounded d. False if d does not fit a half.
  [[nodiscard]] static bool encode(const float* x, std::byte* block) {
    const float d = max_abs(x, kGroup);
    if (!store_scale(d, block + kScaleAt)) return false;
    for (const TritRun& run : Runs) {
      for (int m = 0; m < run.bytes; ++m) {
        unsigned word = 0;
        for (int n = 0; n < run.digits; ++n) {
          const float v = x[run.first + n * run.bytes + m];
          word = 3 * word + static_cast<unsigned>(ternary_code(v, d) + 1);
        }
        if (run.digits == 4) word *= 3;
        block[run.byte + m] = static_cast<std::byte>(trit_byte(word));
      }
    }
    return true;
  }
};

}  // namespace tern::quant
