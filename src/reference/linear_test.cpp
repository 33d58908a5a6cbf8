// Decoders and products against bytes and values worked out by hand.
#include "reference/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <vector>

#include "reference/embed.h"

namespace tern::reference {
namespace {

using quant::Format;

std::vector<std::byte> bytes_of(std::initializer_list<int> head, std::size_t fill, int value) {
  std::vector<std::byte> bytes;
  for (const int b : head) bytes.push_back(static_cast<std::byte>(b));
  bytes.insert(bytes.end(), fill, static_cast<std::byte>(value));
  return bytes;
}

TEST(ReferenceLinear, DecodesTheSmallQ4_0Example) {
  const auto row = bytes_of({0x00, 0x38, 0xf0, 0x89}, 14, 0x88);
  for (int k = 0; k < 32; ++k) {
    const float expected = k == 0 ? -4.0F : k == 1 ? 0.5F : k == 16 ? 3.5F : 0.0F;
    EXPECT_EQ(decode_weight(Format::kQ4_0, row.data(), k), expected) << k;
  }
}

TEST(ReferenceLinear, DecodesTheSmallQ4_1Example) {
  const auto row = bytes_of({0x00, 0x38, 0x00, 0xbc, 0xf0, 0x21}, 14, 0x22);
  for (int k = 0; k < 32; ++k) {
    const float expected = k == 0 ? -1.0F : k == 1 ? -0.5F : k == 16 ? 6.5F : 0.0F;
    EXPECT_EQ(decode_weight(Format::kQ4_1, row.data(), k), expected) << k;
  }
}

TEST(ReferenceLinear, DecodesTheSmallQ8_0Example) {
  const auto row = bytes_of({0x00, 0x38, 0x7f, 0x80, 0xff, 0x01}, 28, 0);
  const float expected[] = {63.5F, -64.0F, -0.5F, 0.5F};
  for (int k = 0; k < 32; ++k) {
    EXPECT_EQ(decode_weight(Format::kQ8_0, row.data(), k), k < 4 ? expected[k] : 0.0F) << k;
  }
}

TEST(ReferenceLinear, SumsAProductAndItsMagnitude) {
  const auto row = bytes_of({0x00, 0x38, 0x00, 0xbc, 0xf0, 0x21}, 14, 0x22);
  std::vector<float> x(32, 0.0F);
  x[0] = 2;    // weight -1
  x[1] = -4;   // weight -0.5
  x[16] = 10;  // weight 6.5
  const LinearResult r = linear_row(Format::kQ4_1, row.data(), x.data(), 32);
  EXPECT_EQ(r.value, -2 + 2 + 65);
  EXPECT_EQ(r.magnitude, 69);
}

TEST(ReferenceLinear, ReadsHalvesAndBfloats) {
  const auto half = bytes_of({0x00, 0xc0, 0x01, 0x00}, 0, 0);  // -2, 2^-24
  EXPECT_EQ(decode_weight(Format::kF16, half.data(), 0), -2.0F);
  EXPECT_EQ(decode_weight(Format::kF16, half.data(), 1), std::ldexp(1.0F, -24));
  const auto bf16 = bytes_of({0x40, 0x40}, 0, 0);  // 3
  EXPECT_EQ(decode_weight(Format::kBf16, bf16.data(), 0), 3.0F);
}

TEST(ReferenceEmbed, CopiesARowAndRefusesAnIdOutOfRange) {
  const float table[] = {1, 2, 3, 4, 5, 6};
  const auto* bytes = reinterpret_cast<const std::byte*>(table);
  float y[2] = {9, 9};
  EXPECT_TRUE(embed_row(Format::kF32, bytes, 3, 2, 2, y));
  EXPECT_EQ(y[0], 5);
  EXPECT_EQ(y[1], 6);
  EXPECT_FALSE(embed_row(Format::kF32, bytes, 3, 2, 3, y));
  EXPECT_EQ(y[0], 0);
  EXPECT_FALSE(embed_row(Format::kF32, bytes, 3, 2, -1, y));
  EXPECT_TRUE(gather_row(table, 2, 3, 1, 2, y));
  EXPECT_EQ(y[1], 4);
  EXPECT_FALSE(gather_row(table, 2, 3, 3, 2, y));
}

}  // namespace
}  // namespace tern::reference
