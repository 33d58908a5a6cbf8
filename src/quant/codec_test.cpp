// Block codecs against literal bytes: the golden blocks and small examples of the format documents,
// both ways.
#include "quant/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "quant/trits.h"

namespace tern::quant {
namespace {

using Bytes = std::vector<std::byte>;

Bytes hex(const std::string& text) {
  Bytes bytes;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    bytes.push_back(static_cast<std::byte>(std::stoul(word, nullptr, 16)));
  }
  return bytes;
}
std::string repeat(const std::string& word, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += word + " ";
  return text;
}

std::int64_t weights_of(Format format, const Bytes& bytes) {
  const FormatInfo& f = info(format);
  return static_cast<std::int64_t>(bytes.size()) / f.block_bytes * f.group;
}
std::vector<float> decode(Format format, const Bytes& bytes) {
  std::vector<float> out(static_cast<std::size_t>(weights_of(format, bytes)));
  decode_row(format, bytes.data(), static_cast<std::int64_t>(out.size()), out.data());
  return out;
}
std::vector<int> decode_codes(Format format, const Bytes& bytes) {
  std::vector<std::int8_t> codes(static_cast<std::size_t>(weights_of(format, bytes)));
  std::vector<std::uint16_t> scales(codes.size() / static_cast<std::size_t>(info(format).group));
  decode_codes_row(format, bytes.data(), static_cast<std::int64_t>(codes.size()), codes.data(),
                   scales.data());
  return {codes.begin(), codes.end()};
}
Bytes encode(Format format, const std::vector<float>& x) {
  Bytes bytes(bytes_for(format, x.size()), std::byte{0xcc});
  encode_row(format, x.data(), static_cast<std::int64_t>(x.size()), bytes.data()).value();
  return bytes;
}

// The two test rows of the format documents, scale 1/4.
std::vector<float> ternary_row(int count) {
  std::vector<float> row;
  for (int j = 0; j < count; ++j) {
    row.push_back(0.25F * static_cast<float>((5 * j + j / 7 + (j * j) / 11) % 3 - 1));
  }
  return row;
}
std::vector<float> sign_row(int count) {
  std::vector<float> row;
  for (int j = 0; j < count; ++j) {
    row.push_back((7 * j + j / 5 + (j * j) / 13) % 2 != 0 ? 0.25F : -0.25F);
  }
  return row;
}

struct Golden {
  const char* name;
  Format format;
  std::vector<float> row;
  std::string bytes;
};

std::vector<Golden> goldens() {
  return {
      {"Q1_0 S", Format::kQ1G128, sign_row(128),
       "00 34 fa d5 cc 54 a0 ed 28 6e 0b 54 66 56 bf 24 ae 23"},
      {"Q2_0 T", Format::kT2G64, ternary_row(64),
       "00 34 18 40 49 62 18 54 25 12 06 aa 9a 24 1a aa 40 12"},
      {"PQ2_0 T", Format::kT2G128, ternary_row(128),
       "00 34 18 40 49 62 18 54 25 12 06 aa 9a 24 1a aa 40 12 86 51 95 48 86 56 95 24 81 a1 02 49 "
       "84 21 "
       "00 44"},
      {"PQ2_0 S", Format::kT2G128, sign_row(128),
       "00 34 88 aa 22 a2 a0 a0 20 22 00 88 a2 a8 80 08 a8 28 8a 00 20 22 28 28 28 22 aa 8a 20 08 "
       "a8 88 "
       "0a 08"},
      {"PTQ1_0 T", Format::kT1G128, ternary_row(128),
       "1c f5 75 03 1b 36 37 8d 86 dc 44 6e ea 0c de 57 d7 73 1d f9 b9 79 a4 6c 00 0d 00 34"},
      {"PTQ1_0 S", Format::kT1G128, sign_row(128),
       "03 ad 39 ec ab c4 e4 f7 be 07 ff 1a e6 1a ff be 13 f9 ff 16 4c c7 e4 16 ab be 00 34"},
      {"TQ1_0 T", Format::kT1G256, ternary_row(256),
       "52 d1 58 1b 46 39 4b a0 a0 ef 27 a3 b0 36 e5 65 4c f2 74 1c 51 98 a1 99 60 60 b7 32 e6 0f "
       "85 05 "
       "cc a1 c1 7a 03 fe 9b 1d 1c 11 10 1a 1a 36 8d 41 c1 46 75 ae 00 34"},
      {"TQ2_0 T", Format::kT2G256, ternary_row(256),
       "68 16 01 a0 58 08 98 99 99 1a 14 29 42 a4 0a 51 28 5a 05 a0 68 19 99 19 11 11 12 24 0a 50 "
       "25 40 "
       "4a 94 2a 45 80 68 16 01 a1 51 11 21 22 20 65 42 94 29 52 a6 01 a8 5a 05 a1 61 22 22 62 66 "
       "64 69 "
       "00 34"},
  };
}

TEST(QuantCodec, GoldenBlocksDecodeToTheirRows) {
  for (const Golden& g : goldens()) {
    EXPECT_EQ(decode(g.format, hex(g.bytes)), g.row) << g.name;
  }
}

TEST(QuantCodec, GoldenRowsEncodeToTheirBytes) {
  for (const Golden& g : goldens()) EXPECT_EQ(encode(g.format, g.row), hex(g.bytes)) << g.name;
}

TEST(QuantCodec, CodesTimesScaleAreTheDecodedWeights) {
  for (const Golden& g : goldens()) {
    std::vector<float> product;
    for (int code : decode_codes(g.format, hex(g.bytes))) {
      product.push_back(static_cast<float>(code) * 0.25F);
    }
    EXPECT_EQ(product, g.row) << g.name;
  }
}

TEST(QuantCodec, TheTestRowsHaveTheStatedCounts) {
  const std::vector<float> t = ternary_row(256);
  EXPECT_EQ(std::count(t.begin(), t.end(), -0.25F), 89);
  EXPECT_EQ(std::count(t.begin(), t.end(), 0.0F), 84);
  EXPECT_EQ(std::count(t.begin(), t.end(), 0.25F), 83);
  const std::vector<float> s = sign_row(128);
  EXPECT_EQ(std::count(s.begin(), s.end(), 0.25F), 64);
}

TEST(QuantCodec, Q4_0HoldsWeightsSixteenApartInAByte) {
  const Bytes block = hex("00 38 f0 89 " + repeat("88", 14));
  std::vector<float> expected(32, 0.0F);
  expected[0] = -4.0F;
  expected[1] = 0.5F;
  expected[16] = 3.5F;
  EXPECT_EQ(decode(Format::kQ4_0, block), expected);
  EXPECT_EQ(encode(Format::kQ4_0, expected), block);
}

TEST(QuantCodec, Q4_1AddsItsMinimum) {
  const Bytes block = hex("00 38 00 bc f0 21 " + repeat("22", 14));
  std::vector<float> expected(32, 0.0F);
  expected[0] = -1.0F;
  expected[1] = -0.5F;
  expected[16] = 6.5F;
  EXPECT_EQ(decode(Format::kQ4_1, block), expected);
  EXPECT_EQ(encode(Format::kQ4_1, expected), block);
}

TEST(QuantCodec, Q8_0HoldsSignedBytes) {
  const Bytes block = hex("00 38 7f 80 ff 01 " + repeat("00", 28));
  std::vector<float> expected(32, 0.0F);
  expected[0] = 63.5F;
  expected[1] = -64.0F;
  expected[2] = -0.5F;
  expected[3] = 0.5F;
  EXPECT_EQ(decode(Format::kQ8_0, block), expected);
  expected[1] = -63.5F;  // the writer's range is symmetric
  EXPECT_EQ(encode(Format::kQ8_0, expected), hex("00 38 7f 81 ff 01 " + repeat("00", 28)));
}

TEST(QuantCodec, DenseFormatsAreTheirOwnBytes) {
  EXPECT_EQ(decode(Format::kF32, hex("00 00 c0 3f 00 00 00 80")),
            (std::vector<float>{1.5F, -0.0F}));
  EXPECT_EQ(decode(Format::kF16, hex("00 3e 00 b4 01 00")),
            (std::vector<float>{1.5F, -0.25F, std::ldexp(1.0F, -24)}));
  EXPECT_EQ(decode(Format::kBf16, hex("c0 3f 80 be")), (std::vector<float>{1.5F, -0.25F}));
  EXPECT_EQ(encode(Format::kF32, {1.5F}), hex("00 00 c0 3f"));
  EXPECT_EQ(encode(Format::kF16, {1.5F, 65504.0F}), hex("00 3e ff 7b"));
  // 1 + 2^-8 lies between two BF16 values and goes to the even one; a little more goes up
  EXPECT_EQ(encode(Format::kBf16, {1.00390625F, 1.00390637F, 1.01171875F}),
            hex("80 3f 81 3f 82 3f"));
}

TEST(QuantCodec, Q1SmallExampleReadsBitsFromTheLowest) {
  const std::vector<float> row = decode(Format::kQ1G128, hex("00 38 39 ff " + repeat("00", 14)));
  std::vector<float> expected(128, -0.5F);
  for (int j : {0, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}) {
    expected[static_cast<std::size_t>(j)] = 0.5F;
  }
  EXPECT_EQ(row, expected);
}

TEST(QuantCodec, TwoBitSmallExamplesReadFourConsecutiveWeights) {
  std::vector<float> expected(64, 0.0F);
  for (int j : {0, 6, 7}) expected[static_cast<std::size_t>(j)] = -0.25F;
  for (int j : {2, 4, 5}) expected[static_cast<std::size_t>(j)] = 0.25F;
  EXPECT_EQ(decode(Format::kT2G64, hex("00 34 64 0a " + repeat("55", 14))), expected);

  std::vector<float> twice = expected;
  twice.insert(twice.end(), expected.begin(), expected.end());
  EXPECT_EQ(
      decode(Format::kT2G128, hex("00 34 64 0a " + repeat("55", 14) + "64 0a " + repeat("55", 14))),
      twice);
}

TEST(QuantCodec, CodeThreeIsTwiceTheScaleAndNotClamped) {
  const Bytes block = hex("00 34 e4 " + repeat("55", 15));
  const std::vector<float> row = decode(Format::kT2G64, block);
  EXPECT_EQ((std::vector<float>(row.begin(), row.begin() + 4)),
            (std::vector<float>{-0.25F, 0.0F, 0.25F, 0.5F}));
  EXPECT_EQ(decode_codes(Format::kT2G64, block)[3], 2);
}

TEST(QuantCodec, Ptq1SmallExample) {
  std::vector<float> expected(128, 0.0F);
  for (int j : {0, 48, 64, 120, 122, 124, 126}) expected[static_cast<std::size_t>(j)] = 0.125F;
  for (int j : {16, 80, 88, 96, 104, 112}) expected[static_cast<std::size_t>(j)] = -0.125F;
  const Bytes block = hex("bd " + repeat("80", 15) + "00 " + repeat("80", 7) + "fd 7f 00 30");
  EXPECT_EQ(decode(Format::kT1G128, block), expected);
  EXPECT_EQ(encode(Format::kT1G128, expected), block);
}

TEST(QuantCodec, Tq1AndTq2SmallExamples) {
  std::vector<float> row(256, 0.0F);
  row[0] = 0.5F;
  row[32] = -0.5F;
  EXPECT_EQ(encode(Format::kT1G256, row),
            hex("b9 " + repeat("80", 47) + repeat("7f", 4) + "00 38"));
  row[96] = 0.5F;
  row[128] = -0.5F;
  EXPECT_EQ(encode(Format::kT2G256, row),
            hex("92 " + repeat("55", 31) + "54 " + repeat("55", 31) + "00 38"));
}

TEST(QuantCodec, EveryByteGivesTheDigitsOfTheExactFloatForm) {
  // F_n = floor(b * 3^n / 256), digit n = F_{n+1} - 3 * F_n: integers without the byte wrap
  for (int b = 0; b < 256; ++b) {
    int power = 1;
    for (int n = 0; n < 5; ++n, power *= 3) {
      const int digit = b * power * 3 / 256 - 3 * (b * power / 256);
      ASSERT_EQ(trit(static_cast<unsigned>(b), n), digit) << b << " digit " << n;
    }
  }
}

TEST(QuantCodec, EveryWordOfDigitsComesBack) {
  std::vector<bool> used(256, false);
  for (unsigned word = 0; word < 243; ++word) {
    const unsigned byte = trit_byte(word);
    ASSERT_LT(byte, 256U);
    used[byte] = true;
    unsigned again = 0;
    for (int n = 0; n < 5; ++n) again = 3 * again + static_cast<unsigned>(trit(byte, n));
    ASSERT_EQ(again, word);
  }
  std::vector<int> never;
  for (int b = 0; b < 256; ++b) {
    if (!used[static_cast<std::size_t>(b)]) never.push_back(b);
  }
  EXPECT_EQ(never, (std::vector<int>{1, 20, 40, 60, 79, 99, 119, 138, 158, 178, 197, 217, 237}));
}

TEST(QuantCodec, ConstantTernaryGroupsHaveTheStatedBytes) {
  std::vector<float> row(128, 0.0F);
  EXPECT_EQ(encode(Format::kT1G128, row), hex(repeat("80", 24) + "7f 7f 00 00"));
  row.assign(128, -0.5F);
  EXPECT_EQ(encode(Format::kT1G128, row), hex(repeat("00", 26) + "00 38"));
  row.assign(128, 0.5F);
  EXPECT_EQ(encode(Format::kT1G128, row), hex(repeat("ff", 24) + "fd fd 00 38"));
}

TEST(QuantCodec, TwoBitCodesUseTheUnroundedScale) {
  std::vector<float> row(64, 0.0F);
  row[0] = 0.3F;
  row[1] = -0.3F;
  row[2] = 0.1F;
  row[3] = -0.2F;
  // codes 2 0 1 0 in one byte; the half of 0.3 is 0x34cd
  EXPECT_EQ(encode(Format::kT2G64, row), hex("cd 34 12 " + repeat("55", 15)));
}

TEST(QuantCodec, HalfWayIsRoundedAwayFromZero) {
  std::vector<float> row(64, 0.0F);
  row[0] = 1.0F;
  row[1] = 0.5F;
  row[2] = -0.5F;
  row[3] = 0.49F;
  EXPECT_EQ(encode(Format::kT2G64, row), hex("00 3c 4a " + repeat("55", 15)));
}

TEST(QuantCodec, BinaryTakesMinusZeroAsPlusAndTheMeanAsScale) {
  std::vector<float> row(128, -1.0F);
  row[0] = -0.0F;
  row[1] = 0.0F;
  row[2] = 3.0F;  // sum of magnitudes 125 + 3 = 128
  EXPECT_EQ(encode(Format::kQ1G128, row), hex("00 3c 07 " + repeat("00", 15)));
}

TEST(QuantCodec, ScalesThatDoNotFitAHalfAreRefused) {
  const float smallest = std::ldexp(1.0F, -24);
  for (const FormatInfo& f : kFormats) {
    if (f.kind == FormatClass::kDense) continue;
    // by which the largest magnitude is divided to get the scale
    const float divisor = f.format == Format::kQ4_0   ? 8.0F
                          : f.format == Format::kQ4_1 ? 15.0F
                          : f.format == Format::kQ8_0 ? 127.0F
                                                      : 1.0F;
    const auto count = static_cast<std::size_t>(f.group);
    Bytes bytes(static_cast<std::size_t>(f.block_bytes));
    const auto fits = [&](float magnitude) {
      std::vector<float> row(count, magnitude);
      if (f.format == Format::kQ4_1) row[0] = 0.0F;
      return encode_row(f.format, row.data(), static_cast<std::int64_t>(count), bytes.data()).ok();
    };
    EXPECT_TRUE(fits(0.0F)) << f.tag;
    EXPECT_TRUE(fits(65504.0F * divisor)) << f.tag;
    EXPECT_FALSE(fits(65536.0F * divisor)) << f.tag;
    EXPECT_TRUE(fits(smallest * divisor)) << f.tag;
    EXPECT_FALSE(fits(smallest * 0.5F * divisor)) << f.tag;  // 2^-25 rounds to 0
    EXPECT_TRUE(fits(smallest * 0.5078125F * divisor)) << f.tag;
    EXPECT_FALSE(fits(std::numeric_limits<float>::infinity())) << f.tag;
    EXPECT_FALSE(fits(std::numeric_limits<float>::quiet_NaN())) << f.tag;
  }
}

TEST(QuantCodec, TheErrorNamesTheGroup) {
  std::vector<float> row(256, 1.0F);
  row[200] = 70000.0F;
  Bytes bytes(68);
  const auto result = encode_row(Format::kT2G128, row.data(), 256, bytes.data());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message(),
            "group 1 (weights 128..256) cannot be stored as PQ2_0: a scale of at most 65504 that "
            "does not round to 0 is needed");
}

TEST(QuantCodec, EdgeScalesDecodeExactly) {
  struct Edge {
    const char* bytes;
    float d;
  };
  const Edge edges[] = {{"00 00", 0.0F},
                        {"01 00", std::ldexp(1.0F, -24)},
                        {"ff 03", 1023.0F * std::ldexp(1.0F, -24)},
                        {"b9 00", 185.0F * std::ldexp(1.0F, -24)},  // about 1.1e-5
                        {"ff 7b", 65504.0F},
                        {"00 b4", -0.25F}};
  for (const Edge& edge : edges) {
    const std::string d = edge.bytes;
    EXPECT_EQ(decode(Format::kQ1G128, hex(d + " " + repeat("01", 16)))[0], edge.d);
    EXPECT_EQ(decode(Format::kQ1G128, hex(d + " " + repeat("01", 16)))[1], -edge.d);
    EXPECT_EQ(decode(Format::kT2G64, hex(d + " " + repeat("02", 16)))[0], edge.d);
    EXPECT_EQ(decode(Format::kT2G128, hex(d + " " + repeat("02", 32)))[0], edge.d);
    EXPECT_EQ(decode(Format::kT1G128, hex(repeat("ff", 26) + d))[127], edge.d);
    EXPECT_EQ(decode(Format::kT1G256, hex(repeat("ff", 52) + d))[255], edge.d);
    EXPECT_EQ(decode(Format::kT2G256, hex(repeat("aa", 64) + d))[255], edge.d);
    EXPECT_EQ(decode(Format::kQ8_0, hex(d + " " + repeat("01", 32)))[31], edge.d);
  }
}

TEST(QuantCodec, FirstBadScaleFindsInfinityAndNan) {
  Bytes rows = hex("00 34 " + repeat("55", 32) + "00 7c " + repeat("55", 32));
  EXPECT_EQ(first_bad_scale(Format::kT2G128, rows), 1);
  rows[35] = std::byte{0x34};
  EXPECT_EQ(first_bad_scale(Format::kT2G128, rows), std::nullopt);
  rows[1] = std::byte{0x7e};
  EXPECT_EQ(first_bad_scale(Format::kT2G128, rows), 0);
  EXPECT_EQ(first_bad_scale(Format::kT1G128, hex(repeat("80", 26) + "00 fc")), 0);
  EXPECT_EQ(first_bad_scale(Format::kQ4_1, hex("00 38 00 7c " + repeat("00", 16))), 0);
  EXPECT_EQ(first_bad_scale(Format::kF32, hex("00 00 80 7f")), std::nullopt);
}

TEST(QuantCodec, SizesFollowTheFormatTable) {
  // bytes of 1,719,904,256 packed weights: formats of one real model
  constexpr std::uint64_t kWeights = 1719904256;
  EXPECT_EQ(bytes_for(Format::kQ1G128, kWeights) + 4 * 123904, 242357152U);
  EXPECT_EQ(bytes_for(Format::kT1G128, kWeights) + 4 * 123904, 376724672U);
  EXPECT_EQ(bytes_for(Format::kT2G128, kWeights) + 4 * 123904, 457345184U);
  EXPECT_EQ(bytes_for(Format::kT2G64, kWeights) + 4 * 123904, 484218688U);
}

}  // namespace
}  // namespace tern::quant
