// Every variant of argmax: ties, NaN, infinities, parts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernels/argmax/argmax.h"

namespace tern::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class ArgmaxKernel : public ::testing::TestWithParam<ArgmaxVariant> {
 protected:
  void SetUp() override {
    if (!cpu_features().contains(GetParam().needs)) GTEST_SKIP() << "needs another CPU";
  }
  // In `parts` pieces of unequal length, merged in reverse order.
  ArgmaxPart in_parts(const std::vector<float>& x, int parts) const {
    ArgmaxPart all;
    const auto n = static_cast<std::int64_t>(x.size());
    for (int p = parts - 1; p >= 0; --p) {
      all = merge_argmax(all, GetParam().run(x.data(), n * p / parts, n * (p + 1) / parts));
    }
    return all;
  }
};

TEST_P(ArgmaxKernel, FindsTheMaximumWhereverItStands) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> values(-3, 3);
  for (const int n : {1, 7, 8, 9, 31, 1023, 1024, 1025}) {
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& v : x) v = values(random);
    for (const int at : {0, n / 2, n - 1}) {
      const float saved = x[static_cast<std::size_t>(at)];
      x[static_cast<std::size_t>(at)] = 4;
      for (const int parts : {1, 2, 5}) {
        const ArgmaxPart best = in_parts(x, parts);
        EXPECT_EQ(best.index, at);
        EXPECT_EQ(best.value, 4);
        EXPECT_TRUE(is_usable(best));
      }
      x[static_cast<std::size_t>(at)] = saved;
    }
  }
  for (const int n : {151669, 248320}) {
    std::vector<float> x(static_cast<std::size_t>(n), -1.0F);
    x.back() = 0;
    EXPECT_EQ(in_parts(x, 3).index, n - 1);
  }
}

TEST_P(ArgmaxKernel, TiesGoToTheLowestIndex) {
  std::vector<float> x(100, 0.0F);
  for (const int parts : {1, 3, 7}) EXPECT_EQ(in_parts(x, parts).index, 0);
  x[13] = x[12] = x[21] = x[96] = 5;  // 13 and 21 share a lane, 12 and 96 do not
  for (const int parts : {1, 3, 7}) EXPECT_EQ(in_parts(x, parts).index, 12);
  x[0] = -0.0F;
  x.assign(9, -0.0F);
  x[4] = 0.0F;  // equal to -0
  EXPECT_EQ(in_parts(x, 1).index, 0);
}

TEST_P(ArgmaxKernel, NeverChoosesNanAndReportsIt) {
  for (const int at : {0, 3, 17, 19}) {
    std::vector<float> x(20, 1.0F);
    x[5] = 2;
    x[static_cast<std::size_t>(at)] = kNan;
    const ArgmaxPart best = in_parts(x, 1);
    EXPECT_EQ(best.index, 5);
    EXPECT_TRUE(best.has_nan);
    EXPECT_FALSE(is_usable(best));
  }
  const ArgmaxPart none = in_parts(std::vector<float>(20, kNan), 2);
  EXPECT_EQ(none.index, -1);
  EXPECT_FALSE(is_usable(none));
}

TEST_P(ArgmaxKernel, KnowsInfinities) {
  std::vector<float> x(30, -kInf);
  ArgmaxPart best = in_parts(x, 1);
  EXPECT_EQ(best.index, 0);
  EXPECT_FALSE(is_usable(best));  // nothing finite
  x[29] = -1e30F;
  best = in_parts(x, 4);
  EXPECT_EQ(best.index, 29);
  EXPECT_TRUE(is_usable(best));
  x[3] = kInf;
  EXPECT_EQ(in_parts(x, 4).index, 3);
  x.assign(20, -kInf);
  x[0] = kNan;
  EXPECT_EQ(in_parts(x, 1).index, 1);
}

TEST_P(ArgmaxKernel, AnEmptyRangeHasNoIndex) {
  const float x = 1;
  const ArgmaxPart none = GetParam().run(&x, 1, 1);
  EXPECT_EQ(none.index, -1);
  EXPECT_EQ(merge_argmax(none, GetParam().run(&x, 0, 1)).index, 0);
}

INSTANTIATE_TEST_SUITE_P(Variants, ArgmaxKernel,
                         ::testing::ValuesIn(argmax_variants().begin(), argmax_variants().end()),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace tern::cpu
