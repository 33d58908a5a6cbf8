// Tests of the sampler and of its generator.
#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/random.h"

namespace tern::runtime {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Known answers of the authors' distribution (Random123, kat_vectors, philox4x32 10).
TEST(Philox, GivesTheAuthorsKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

SamplingOptions plain() {
  SamplingOptions o;
  o.temperature = 1;
  o.top_k = 0;
  o.top_p = 1;
  o.min_p = 0;
  return o;
}

std::int32_t pick(const SamplingOptions& o, const std::vector<float>& logits,
                  std::uint64_t position = 0, std::vector<std::int32_t> recent = {},
                  std::vector<std::int32_t> forbidden = {}) {
  Sampler s = Sampler::create(o, static_cast<std::int64_t>(logits.size())).value();
  const Result<std::int32_t> id = s.sample(logits, position, recent, forbidden);
  return id.ok() ? *id : -1;
}

TEST(Sampler, ChoosesTheLowestIdAmongEqualsAtTemperatureZero) {
  SamplingOptions o = plain();
  o.temperature = 0;
  EXPECT_EQ(pick(o, {1, 3, 2, 3}), 1);
}

TEST(Sampler, RefusesLogitsThatAreNotFinite) {
  EXPECT_EQ(pick(plain(), {1, std::nanf(""), 2}), -1);
  EXPECT_EQ(pick(plain(), {1, kInf, 2}), -1);
}

TEST(Sampler, TellsLogitsThatAreNotFiniteFromARequestThatForbidsEveryToken) {
  for (const float temperature : {0.0F, 1.0F}) {
    SamplingOptions o = plain();
    o.temperature = temperature;
    o.logit_bias = {{0, -kInf}, {2, -kInf}};
    Sampler s = Sampler::create(o, 3).value();
    const std::vector<std::int32_t> forbidden = {1};
    EXPECT_EQ(s.sample(std::vector<float>{1, 2, 3}, 0, {}, {}).value(), 1);
    const auto none = s.sample(std::vector<float>{1, 2, 3}, 0, {}, forbidden);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(none.error().what(), "logit_bias and min_tokens forbid every token");
    const auto damaged = s.sample(std::vector<float>{1, 2, -kInf}, 0, {}, forbidden);
    ASSERT_FALSE(damaged.ok());
    EXPECT_EQ(damaged.error().code(), ErrorCode::kNumeric);
  }
}

TEST(Sampler, DrawsTheSameNumberForTheSameSeedAndPosition) {
  SamplingOptions o = plain();
  o.seed = 42;
  std::vector<float> logits(100, 0.0F);
  const std::int32_t first = pick(o, logits, 5);
  EXPECT_EQ(pick(o, logits, 5), first);
  bool differs = false;
  for (std::uint64_t p = 6; p < 12; ++p) differs = differs || pick(o, logits, p) != first;
  EXPECT_TRUE(differs);
}

TEST(Sampler, FollowsTheDistribution) {
  SamplingOptions o = plain();
  // Probabilities 0.5, 0.3, 0.2.
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  Sampler s = Sampler::create(o, 3).value();
  std::array<int, 3> counts{};
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i)
    ++counts[static_cast<std::size_t>(*s.sample(logits, static_cast<std::uint64_t>(i), {}, {}))];
  const std::array<double, 3> expected = {0.5 * kDraws, 0.3 * kDraws, 0.2 * kDraws};
  double chi_square = 0;
  for (std::size_t i = 0; i < 3; ++i)
    chi_square += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  EXPECT_LT(chi_square, 13.8);  // 2 degrees of freedom, p = 0.001
}

TEST(Sampler, TopKKeepsTheBestAndTheLowestIdAtATie) {
  SamplingOptions o = plain();
  o.top_k = 1;
  EXPECT_EQ(pick(o, {0, 2, 2, 1}), 1);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  SamplingOptions o = plain();
  o.top_p = 0.5F;
  const std::vector<float> logits = {std::log(0.6F), std::log(0.3F), std::log(0.1F)};
  for (std::uint64_t p = 0; p < 50; ++p) EXPECT_EQ(pick(o, logits, p), 0);
  o.top_p = 0;  // at least one
  EXPECT_EQ(pick(o, logits), 0);
}

TEST(Sampler, MinPIsRelativeToTheLargest) {
  SamplingOptions o = plain();
  o.min_p = 0.4F;
  const std::vector<float> logits = {std::log(0.6F), std::log(0.3F), std::log(0.1F)};
  bool has_second = false;
  for (std::uint64_t p = 0; p < 100; ++p) {
    const std::int32_t id = pick(o, logits, p);
    EXPECT_NE(id, 2);
    has_second = has_second || id == 1;
  }
  EXPECT_TRUE(has_second);
}

TEST(Sampler, ExtremeTemperaturesAreTheLimitCases) {
  SamplingOptions o = plain();
  o.temperature = 1e-9F;
  for (std::uint64_t p = 0; p < 20; ++p) EXPECT_EQ(pick(o, {0, 1, 0.5F}, p), 1);
  o.temperature = 1e9F;
  std::array<int, 2> counts{};
  for (std::uint64_t p = 0; p < 1000; ++p) ++counts[static_cast<std::size_t>(pick(o, {0, 50}, p))];
  EXPECT_NEAR(counts[0], 500, 80);
}

TEST(Sampler, PenaltiesDividePositiveAndMultiplyNegativeLogits) {
  SamplingOptions o = plain();
  o.temperature = 0;
  o.repeat_penalty = 2;
  EXPECT_EQ(pick(o, {3, 2}, 0, {0}), 1);       // 1.5 against 2
  EXPECT_EQ(pick(o, {-1, -1.5F}, 0, {0}), 1);  // -2 against -1.5
  o.repeat_penalty = 1;
  o.frequency_penalty = 0.6F;
  EXPECT_EQ(pick(o, {3, 2}, 0, {0}), 0);     // 2.4 against 2
  EXPECT_EQ(pick(o, {3, 2}, 0, {0, 0}), 1);  // 1.8 against 2
  o.frequency_penalty = 0;
  o.presence_penalty = 1.5F;
  EXPECT_EQ(pick(o, {3, 2}, 0, {0, 0, 0}), 1);  // 1.5 against 2, once
  o.repeat_last_n = 1;
  EXPECT_EQ(pick(o, {3, 2}, 0, {0, 1}), 0);  // only token 1 is in the window
}

TEST(Sampler, BiasAndForbiddenTokensComeFirst) {
  SamplingOptions o = plain();
  o.temperature = 0;
  o.logit_bias = {{0, 5.0F}, {1, -kInf}};
  EXPECT_EQ(pick(o, {0, 9, 4}), 0);
  EXPECT_EQ(pick(o, {0, 9, 4}, 0, {}, {0}), 2);
  EXPECT_EQ(pick(o, {0, 9, 4}, 0, {}, {0, 2}), -1);  // nothing is left
}

TEST(Sampler, RefusesOptionsOutsideOfTheirRangeByName) {
  SamplingOptions o = plain();
  o.top_p = 1.5F;
  EXPECT_NE(Sampler::create(o, 4).error().message().find("top_p is 1.5"), std::string::npos);
  o = plain();
  o.temperature = std::nanf("");
  EXPECT_FALSE(Sampler::create(o, 4).ok());
  o = plain();
  o.logit_bias = {{4, 1.0F}};
  EXPECT_NE(Sampler::create(o, 4).error().message().find("token 4"), std::string::npos);
}

}  // namespace
}  // namespace tern::runtime
