// The identity of a weight format. File type ids collide in the wild, so they become a Format in
// io/ and nowhere else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tern::quant {

enum class Format : std::uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ4_0,    // 32 weights, 4 bits, one scale
  kQ4_1,    // 32 weights, 4 bits, scale and minimum
  kQ8_0,    // 32 weights, 8 bits, one scale
  kQ1G128,  // binary, groups of 128 (file type Q1_0)
  kT2G64,   // 2-bit codes, groups of 64 (Q2_0)
  kT2G128,  // 2-bit codes, groups of 128 (PQ2_0 and the older form of Q2_0)
  kT1G128,  // base-3 digits, groups of 128 (PTQ1_0)
  kT1G256,  // base-3 digits, groups of 256 (TQ1_0)
  kT2G256,  // 2-bit codes, groups of 256 (TQ2_0)
};

// How the weights of a format are multiplied: packed ones by exact integers.
enum class FormatClass : std::uint8_t { kDense, kBlock, kPacked };

struct FormatInfo {
  Format format;
  std::string_view tag;        // the word in kernel names: "q1_g128"
  std::string_view file_name;  // the word that people know from files: "Q1_0"
  FormatClass kind;
  int group;        // weights per block
  int block_bytes;  // bytes per block in the file
};

inline constexpr std::array<FormatInfo, 12> kFormats = {{
    {Format::kF32, "f32", "F32", FormatClass::kDense, 1, 4},
    {Format::kF16, "f16", "F16", FormatClass::kDense, 1, 2},
    {Format::kBf16, "bf16", "BF16", FormatClass::kDense, 1, 2},
    {Format::kQ4_0, "q4_0", "Q4_0", FormatClass::kBlock, 32, 18},
    {Format::kQ4_1, "q4_1", "Q4_1", FormatClass::kBlock, 32, 20},
    {Format::kQ8_0, "q8_0", "Q8_0", FormatClass::kBlock, 32, 34},
    {Format::kQ1G128, "q1_g128", "Q1_0", FormatClass::kPacked, 128, 18},
    {Format::kT2G64, "t2_g64", "Q2_0", FormatClass::kPacked, 64, 18},
    {Format::kT2G128, "t2_g128", "PQ2_0", FormatClass::kPacked, 128, 34},
    {Format::kT1G128, "t1_g128", "PTQ1_0", FormatClass::kPacked, 128, 28},
    {Format::kT1G256, "t1_g256", "TQ1_0", FormatClass::kPacked, 256, 54},
    {Format::kT2G256, "t2_g256", "TQ2_0", FormatClass::kPacked, 256, 66},
}};

[[nodiscard]] constexpr const FormatInfo& info(Format format) {
  return kFormats[static_cast<std::size_t>(format)];
}
[[nodiscard]] constexpr bool is_packed(Format format) {
  return info(format).kind == FormatClass::kPacked;
}
// Bytes of `weights` consecutive weights; weights is a multiple of the group.
[[nodiscard]] constexpr std::uint64_t bytes_for(Format format, std::uint64_t weights) {
  const FormatInfo& f = info(format);
  return weights / static_cast<std::uint64_t>(f.group) * static_cast<std::uint64_t>(f.block_bytes);
}

}  // namespace tern::quant
