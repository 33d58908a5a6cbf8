// The scalar formulas against values worked out by hand.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <vector>

#include "reference/add.h"
#include "reference/argmax.h"
#include "reference/attention.h"
#include "reference/kv_cache.h"
#include "reference/rms_norm.h"
#include "reference/rope.h"
#include "reference/rope_frequencies.h"
#include "reference/swiglu.h"

namespace tern::reference {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ReferenceRmsNorm, DividesByTheRootMeanSquare) {
  const float x[] = {3, 4, 0, 0};  // mean square 6.25, root 2.5
  const float w[] = {1, 2, 3, 4};
  float y[4];
  rms_norm(x, w, 4, 0, y);
  EXPECT_FLOAT_EQ(y[0], 1.2F);
  EXPECT_FLOAT_EQ(y[1], 3.2F);
  EXPECT_EQ(y[2], 0);
  const float zero[4] = {};
  rms_norm(zero, w, 4, 0, y);
  EXPECT_EQ(y[3], 0);
  rms_norm(x, w, 4, 18.75F, y);  // eps inside of the root: sqrt(25) = 5
  EXPECT_FLOAT_EQ(y[0], 0.6F);
}

TEST(ReferenceRope, TurnsAQuarterInBothPairings) {
  const std::array<double, 2> frequency = {std::numbers::pi / 2, 0};
  const float x[] = {1, 2, 3, 4, 5};
  float y[5];
  rope(x, 5, 4, false, frequency.data(), 1, 1, y);  // pairs (0,2), (1,3)
  EXPECT_FLOAT_EQ(y[0], -3);
  EXPECT_FLOAT_EQ(y[2], 1);
  EXPECT_EQ(y[1], 2);
  EXPECT_EQ(y[3], 4);
  EXPECT_EQ(y[4], 5);
  rope(x, 5, 4, true, frequency.data(), 2, 1, y);  // pairs (0,1), (2,3), doubled
  EXPECT_FLOAT_EQ(y[0], -4);
  EXPECT_FLOAT_EQ(y[1], 2);
  EXPECT_EQ(y[2], 6);
  EXPECT_EQ(y[3], 8);
}

TEST(ReferenceRopeFrequencies, MatchTheYarnTable) {
  const YarnFormula yarn{1e6, 128, 4, 16384};
  EXPECT_NEAR(yarn_correction(yarn, 32), 20.38496, 1e-5);
  EXPECT_NEAR(yarn_correction(yarn, 1), 36.43989, 1e-5);
  EXPECT_NEAR(yarn_frequency(yarn, 28), 0.00153441828, 1e-11);
  EXPECT_NEAR(yarn_attention_factor(4), 1.138629436, 1e-9);
  EXPECT_EQ(llama3_frequency(1, 8, 1, 4, 8192), 1);
  EXPECT_EQ(llama3_frequency(1e-6, 8, 1, 4, 8192), 1e-6 / 8);
}

TEST(ReferenceSwiglu, HasItsLimits) {
  EXPECT_EQ(silu(0), 0);
  EXPECT_FLOAT_EQ(silu(1), 0.731058579F);
  EXPECT_FLOAT_EQ(swiglu(1, 2), 1.462117157F);
  EXPECT_EQ(silu(-kInf), 0);
  EXPECT_EQ(silu(kInf), kInf);
  EXPECT_TRUE(std::isnan(silu(kNan)));
  EXPECT_EQ(silu(-1e30F), 0);
}

TEST(ReferenceArgmax, TakesTheLowestIndexAndNeverNan) {
  const float x[] = {kNan, 1, 5, 5, -kInf};
  EXPECT_EQ(argmax(x, 0, 5).index, 2);
  EXPECT_TRUE(argmax(x, 0, 5).has_nan);
  EXPECT_FALSE(argmax(x, 1, 5).has_nan);
  EXPECT_EQ(argmax(x, 0, 1).index, -1);
  EXPECT_EQ(argmax(x, 4, 5).index, 4);
  EXPECT_FALSE(argmax(x, 4, 5).has_finite);
}

TEST(ReferenceAdd, Adds) {
  const float a[] = {1, 2};
  const float b[] = {10, 20};
  float y[2];
  add(a, b, 2, y);
  EXPECT_EQ(y[0], 11);
  EXPECT_EQ(y[1], 22);
}

// Two key heads of width 1 over two pages that lie in reverse order.
class ReferenceAttention : public testing::Test {
 protected:
  KvPlane plane(std::vector<std::byte>& memory) const {
    return {memory.data(), 2 * 32 * 2, true, 2, 1};
  }
  void store(const KvPlane& p, int t, float value) const {
    kv_store(p, pages_.data(), t, 0, 0, value);
    kv_store(p, pages_.data(), t, 1, 0, -value);
  }
  std::vector<std::byte> k_ = std::vector<std::byte>(256);
  std::vector<std::byte> v_ = std::vector<std::byte>(256);
  std::array<std::uint32_t, 2> pages_ = {1, 0};
};

TEST_F(ReferenceAttention, WeighsValuesByTheSoftmaxOfTheScores) {
  const KvPlane k = plane(k_);
  const KvPlane v = plane(v_);
  for (int t = 0; t < 33; ++t) store(k, t, -100);
  store(k, 0, 0);
  store(k, 32, std::numbers::ln2_v<float>);
  store(v, 0, 3);
  store(v, 32, 6);
  const float q = 2;
  float out = kNan;
  // scale 1/2: scores 0 and ln 2 (rounded to half), the rest vanishes: (3 + 2 * 6) / 3 = 5
  attention(k, v, pages_.data(), 0, 33, 0.5F, &q, &out);
  EXPECT_NEAR(out, 5, 1e-3);                              // ln 2 as half is off by at most 2^-12
  attention(k, v, pages_.data(), 0, 32, 0.5F, &q, &out);  // causal: position 32 is not seen
  EXPECT_FLOAT_EQ(out, 3);
  attention(k, v, pages_.data(), 1, 1, 0.5F, &q, &out);
  EXPECT_FLOAT_EQ(out, -3);
  attention(k, v, pages_.data(), 0, 0, 0.5F, &q, &out);
  EXPECT_EQ(out, 0);
}

TEST_F(ReferenceAttention, RowOfMinusInfinityGivesZeros) {
  const KvPlane k = plane(k_);
  const KvPlane v = plane(v_);
  store(k, 0, -kInf);
  store(v, 0, 3);
  const float q = 1;
  float out = kNan;
  attention(k, v, pages_.data(), 0, 1, 1, &q, &out);
  EXPECT_EQ(out, 0);
}

TEST(ReferenceKvStore, RoundsToEvenAndReportsOverflow) {
  std::vector<std::byte> memory(64 * 2);
  const KvPlane p{memory.data(), 64, true, 1, 1};
  const std::uint32_t page = 1;
  EXPECT_EQ(kv_store(p, &page, 0, 0, 0, 2049), KvStored::kAsItIs);  // between 2048 and 2050
  EXPECT_EQ(kv_load(p, &page, 0, 0, 0), 2048);
  EXPECT_EQ(kv_store(p, &page, 31, 0, 0, 65520), KvStored::kOverflowed);
  EXPECT_EQ(kv_load(p, &page, 31, 0, 0), kInf);
  EXPECT_EQ(kv_store(p, &page, 1, 0, 0, kNan), KvStored::kNotFinite);
  EXPECT_EQ(memory[0], std::byte{0});  // page 0 is untouched
}

}  // namespace
}  // namespace tern::reference
