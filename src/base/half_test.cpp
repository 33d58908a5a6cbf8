// All 65,536 values of both 16-bit floats, against their definition and against the processor.
#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tern {
namespace {

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// The value of a finite half by the formula of the standard.
double half_by_definition(std::uint16_t half) {
  const int exponent = (half >> 10) & 0x1f;
  const int mantissa = half & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_nan(std::uint16_t half) { return (half & 0x7fff) > 0x7c00; }

TEST(Half, EveryValueIsDecodedAsDefined) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const float value = half_to_float(half);
    if (is_nan(half)) {
      ASSERT_TRUE(std::isnan(value)) << i;
      // Sign and payload are kept, the quiet bit is set.
      ASSERT_EQ(bits(value), ((i & 0x8000u) << 16) | 0x7fc00000u | ((i & 0x3ffu) << 13)) << i;
    } else if ((half & 0x7fff) == 0x7c00) {
      ASSERT_EQ(value, (half & 0x8000) != 0 ? -INFINITY : INFINITY);
    } else {
      ASSERT_EQ(static_cast<double>(value), half_by_definition(half)) << i;
      ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << i;
    }
  }
}

TEST(Half, EveryValueSurvivesTheRoundTrip) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const auto expected = static_cast<std::uint16_t>(is_nan(half) ? half | 0x200 : half);
    ASSERT_EQ(float_to_half(half_to_float(half)), expected) << i;
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  // Between every two neighbours: just below the middle, the middle, just above.
  for (std::uint32_t i = 0; i < 0x7bff; ++i) {
    const auto low = static_cast<std::uint16_t>(i);
    const auto high = static_cast<std::uint16_t>(i + 1);
    const auto middle =
        static_cast<float>((half_by_definition(low) + half_by_definition(high)) / 2);
    const std::uint16_t even = (i & 1u) == 0 ? low : high;
    ASSERT_EQ(float_to_half(middle), even) << i;
    ASSERT_EQ(float_to_half(-middle), even | 0x8000) << i;
    ASSERT_EQ(float_to_half(std::nextafterf(middle, 0.0F)), low) << i;
    ASSERT_EQ(float_to_half(std::nextafterf(middle, 1e9F)), high) << i;
  }
}

TEST(Half, TheEndsOfTheRange) {
  EXPECT_EQ(float_to_half(0.0F), 0x0000);
  EXPECT_EQ(float_to_half(-0.0F), 0x8000);
  EXPECT_EQ(float_to_half(1.0F), 0x3c00);
  EXPECT_EQ(float_to_half(-2.0F), 0xc000);
  EXPECT_EQ(float_to_half(65504.0F), 0x7bff);
  EXPECT_EQ(float_to_half(std::nextafterf(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0F), 0x7c00);  // the tie goes to the even one, infinity
  EXPECT_EQ(float_to_half(1e30F), 0x7c00);
  EXPECT_EQ(float_to_half(-INFINITY), 0xfc00);
  EXPECT_EQ(float_to_half(0x1p-25F), 0x0000);  // tie between 0 and the smallest
  EXPECT_EQ(float_to_half(std::nextafterf(0x1p-25F, 1.0F)), 0x0001);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(float_to_half(0x1.ffcp-15F), 0x0400 - 1 + 1);  // 2^-14 less half a step: up to normal
  EXPECT_EQ(float_to_half(std::bit_cast<float>(0x7f800001u)),
            0x7e00);  // a NaN with a small payload
  EXPECT_EQ(float_to_half(std::bit_cast<float>(0xffc02000u)), 0xfe01);
  static_assert(half_to_float(0x3555) == 0.333251953125F);
  static_assert(float_to_half(0.1F) == 0x2e66);
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) float decode_by_processor(std::uint16_t half) {
  return _cvtsh_ss(half);
}
__attribute__((target("f16c"))) std::uint16_t encode_by_processor(float value) {
  return static_cast<std::uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
}

TEST(Half, EqualsTheProcessorBitForBit) {
  if (!cpu_features().contains({CpuFeature::kF16c})) GTEST_SKIP() << "needs F16C";
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    ASSERT_EQ(bits(half_to_float(half)), bits(decode_by_processor(half))) << i;
  }
  // Every 2,039th float: all exponents, both signs, NaNs.
  for (std::uint64_t i = 0; i < (std::uint64_t{1} << 32); i += 2039) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    ASSERT_EQ(float_to_half(value), encode_by_processor(value)) << i;
  }
}
#endif

TEST(Bf16, EveryValueSurvivesTheRoundTrip) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto value = static_cast<std::uint16_t>(i);
    ASSERT_EQ(bits(bf16_to_float(value)), i << 16);
    const bool is_a_nan = (i & 0x7fffu) > 0x7f80u;
    ASSERT_EQ(float_to_bf16(bf16_to_float(value)), is_a_nan ? (value | 0x40) : value) << i;
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(float_to_bf16(1.0F), 0x3f80);
  EXPECT_EQ(float_to_bf16(1.00390625F), 0x3f80);  // 1 + 2^-8, a tie: to even, down
  EXPECT_EQ(float_to_bf16(1.01171875F), 0x3f82);  // 1 + 3 * 2^-8, a tie: to even, up
  EXPECT_EQ(float_to_bf16(1.005F), 0x3f81);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);  // rounds to infinity
  EXPECT_EQ(float_to_bf16(-INFINITY), 0xff80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);  // stays a NaN
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x00018000u)), 0x0002);  // subnormal tie to even
}

}  // namespace
}  // namespace tern
