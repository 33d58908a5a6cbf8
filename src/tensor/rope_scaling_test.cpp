// Frequencies against the table of formats.md 3 and against closed forms worked out by hand.
#include "tensor/rope_scaling.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tern {
namespace {

RopeParameters yarn(double original_context) {
  RopeParameters p;
  p.dims = 128;
  p.theta = 1e6;
  p.scaling = RopeScaling::kYarn;
  p.factor = 4;
  p.original_context = original_context;
  return p;
}

// The table states nine digits.
void expect_digits(double value, double expected) { EXPECT_NEAR(value, expected, 1e-8 * expected); }

TEST(RopeScaling, YarnOfOriginalContext16384MatchesTheTable) {
  const RopeFrequencies r = rope_frequencies(yarn(16384)).value();
  ASSERT_EQ(r.frequency.size(), 64U);
  EXPECT_DOUBLE_EQ(r.frequency[0], 1.0);
  expect_digits(r.frequency[20], 0.0133352143);
  expect_digits(r.frequency[21], 0.0102719866);
  expect_digits(r.frequency[28], 0.00153441828);
  expect_digits(r.frequency[37], 8.49552082e-05);
  expect_digits(r.frequency[63], 3.1023444e-07);
  expect_digits(r.attention_factor, 1.138629436);
}

TEST(RopeScaling, YarnOfOriginalContext8192MatchesTheTable) {
  const RopeFrequencies r = rope_frequencies(yarn(8192)).value();
  expect_digits(r.frequency[17], 0.0254829675);
  expect_digits(r.frequency[18], 0.0196292833);
  expect_digits(r.frequency[25], 0.00293220118);
  expect_digits(r.frequency[34], 0.000162345408);
}

TEST(RopeScaling, ExtFactorZeroIsLinearScalingWithoutAttentionFactor) {
  RopeParameters p = yarn(16384);
  p.ext_factor = 0;
  const RopeFrequencies r = rope_frequencies(p).value();
  for (std::size_t j = 0; j < 64; ++j) {
    EXPECT_NEAR(r.frequency[j], std::pow(1e6, -static_cast<double>(j) / 64) / 4,
                1e-15 * r.frequency[0]);
  }
  EXPECT_EQ(r.attention_factor, 1.0);
}

TEST(RopeScaling, AttentionFactorMultipliesOrReplaces) {
  RopeParameters p = yarn(16384);
  p.attention_factor = 2;
  EXPECT_NEAR(rope_frequencies(p).value().attention_factor, 2.277258872, 1e-9);
  p.replaces_attention_factor = true;
  EXPECT_EQ(rope_frequencies(p).value().attention_factor, 2.0);
}

TEST(RopeScaling, TruncateOffKeepsFractionsOfTheCorrections) {
  RopeParameters p = yarn(16384);
  p.truncate = false;
  const RopeFrequencies r = rope_frequencies(p).value();
  // lo = 20.38496, hi = 36.43989: at j = 21 the ramp is 1 - (21 - 20.38496) / 16.05493 = 0.961691.
  const double f = std::pow(1e6, -21.0 / 64);
  EXPECT_NEAR(r.frequency[21] / f, 0.961691 + 0.25 * (1 - 0.961691), 2e-6);
}

TEST(RopeScaling, NoneAndLinear) {
  RopeParameters p;
  p.dims = 4;
  p.theta = 10000;
  EXPECT_NEAR(rope_frequencies(p).value().frequency[1], 0.01, 1e-17);
  p.scaling = RopeScaling::kLinear;
  p.factor = 8;
  const RopeFrequencies r = rope_frequencies(p).value();
  EXPECT_DOUBLE_EQ(r.frequency[0], 0.125);
  EXPECT_NEAR(r.frequency[1], 0.00125, 1e-17);
  EXPECT_EQ(r.attention_factor, 1.0);
}

TEST(RopeScaling, Llama3KeepsHighBendsMiddleAndDividesLowFrequencies) {
  RopeParameters p;
  p.dims = 64;
  p.theta = 500000;
  p.scaling = RopeScaling::kLlama3;
  p.factor = 32;
  p.low_frequency_factor = 1;
  p.high_frequency_factor = 4;
  p.original_context = 8192;
  const RopeFrequencies r = rope_frequencies(p).value();
  EXPECT_DOUBLE_EQ(r.frequency[0], 1.0);  // 1,304 rotations, far above 4
  const double last = std::pow(500000.0, -62.0 / 64);
  EXPECT_NEAR(r.frequency[31], last / 32, 1e-12 * last);  // 0.004 rotations
  // j = 16: f = 1.41421356e-3, 8192 f / 2 pi = 1.843848 rotations, s = 0.281283.
  const double f = std::pow(500000.0, -0.5);
  EXPECT_NEAR(f, 1.41421356e-3, 1e-11);
  EXPECT_NEAR(r.frequency[16] / f, (1 - 0.281283) / 32 + 0.281283, 2e-6);
}

TEST(RopeScaling, FactorsOfATensorDivide) {
  RopeParameters p;
  p.dims = 4;
  p.theta = 10000;
  p.scaling = RopeScaling::kFactors;
  p.frequency_factors = {1, 8};
  const RopeFrequencies r = rope_frequencies(p).value();
  EXPECT_DOUBLE_EQ(r.frequency[0], 1.0);
  EXPECT_NEAR(r.frequency[1], 0.00125, 1e-17);
  p.frequency_factors = {1};
  EXPECT_EQ(rope_frequencies(p).error().code(), ErrorCode::kInvalidArgument);
  p.frequency_factors = {1, 0};
  EXPECT_FALSE(rope_frequencies(p).ok());
}

TEST(RopeScaling, RefusesParametersOutOfRange) {
  RopeParameters p = yarn(16384);
  p.dims = 127;
  EXPECT_EQ(rope_frequencies(p).error().code(), ErrorCode::kInvalidArgument);
  p = yarn(0);
  EXPECT_FALSE(rope_frequencies(p).ok());
  p = yarn(16384);
  p.factor = 0;
  EXPECT_FALSE(rope_frequencies(p).ok());
  p = yarn(16384);
  p.theta = 1;
  EXPECT_FALSE(rope_frequencies(p).ok());
  p = yarn(16384);
  p.beta_fast = std::nan("");
  EXPECT_FALSE(rope_frequencies(p).ok());
  p = yarn(16384);
  p.scaling = RopeScaling::kLlama3;
  p.high_frequency_factor = 1;
  EXPECT_FALSE(rope_frequencies(p).ok());
}

TEST(RopeScaling, NoPairsGiveAnEmptyTable) {
  RopeParameters p;
  EXPECT_TRUE(rope_frequencies(p).value().frequency.empty());
}

}  // namespace
}  // namespace tern
