// Every variant of the elementwise helpers.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "backend/cpu/kernels/elementwise/elementwise.h"
#include "backend/cpu/kernels/elementwise/test_rows.h"

namespace tern::cpu {
namespace {

using testing::Rows;

class Elementwise : public ::testing::TestWithParam<ElementwiseVariant> {
 protected:
  void SetUp() override {
    if (!cpu_features().contains(GetParam().needs)) GTEST_SKIP() << "needs another CPU";
  }
};

TEST_P(Elementwise, AddsRowsOfDifferentStridesAndInPlace) {
  for (const int width : {1, 7, 8, 9, 35}) {
    Rows a(4, width);
    Rows b(4, width, 2);
    Rows y(4, width, 9);
    a.fill_normal(1);
    b.fill_normal(2);
    GetParam().add({a.data(), a.stride(), b.data(), b.stride(), y.data(), y.stride(), width}, 1, 4);
    EXPECT_TRUE(std::isnan(y.row(0)[0]));
    for (int r = 1; r < 4; ++r) {
      for (int c = 0; c < width; ++c) ASSERT_EQ(y.row(r)[c], a.row(r)[c] + b.row(r)[c]);
    }
    GetParam().add({a.data(), a.stride(), b.data(), b.stride(), a.data(), a.stride(), width}, 1, 4);
    for (int r = 1; r < 4; ++r) EXPECT_TRUE(testing::same_bits(a.row(r), y.row(r), width));
    EXPECT_TRUE(y.guards_are_intact());
    EXPECT_TRUE(a.guards_are_intact());
  }
}

TEST_P(Elementwise, FindsASingleNanOrInfAnywhereAndNothingOutside) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity()};
  for (const int width : {1, 8, 13, 31}) {
    Rows x(3, width);  // the guards are NaN
    x.fill_normal(3);
    x.row(1)[0] = std::numeric_limits<float>::max();
    EXPECT_FALSE(GetParam().has_non_finite(x.data(), x.stride(), width, 0, 3));
    for (int c = 0; c < width; ++c) {
      const float saved = x.row(2)[c];
      x.row(2)[c] = bad[c % 3];
      EXPECT_TRUE(GetParam().has_non_finite(x.data(), x.stride(), width, 0, 3)) << c;
      EXPECT_FALSE(GetParam().has_non_finite(x.data(), x.stride(), width, 0, 2));
      x.row(2)[c] = saved;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, Elementwise,
                         ::testing::ValuesIn(elementwise_variants().begin(),
                                             elementwise_variants().end()),
                         [](const auto& variant) { return std::string(variant.param.name); });

TEST(GatherRows, CopiesChosenRowsAndRefusesOthers) {
  Rows x(3, 5);
  x.fill_normal(4);
  Rows y(4, 5);
  const std::uint32_t rows[] = {2, 0, 2, 1};
  EXPECT_TRUE(gather_rows(x.data(), x.stride(), 3, rows, y.data(), y.stride(), 5, 0, 4));
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(testing::same_bits(y.row(i), x.row(static_cast<int>(rows[i])), 5));
  }
  EXPECT_TRUE(y.guards_are_intact());
  const std::uint32_t outside[] = {3, 0xFFFFFFFFU};
  EXPECT_FALSE(gather_rows(x.data(), x.stride(), 3, outside, y.data(), y.stride(), 5, 1, 2));
  EXPECT_EQ(y.row(1)[4], 0);
  EXPECT_NE(y.row(0)[4], 0);
}

TEST(CopyRows, CopiesBetweenStrides) {
  Rows x(3, 5);
  x.fill_normal(5);
  Rows y(3, 5, 0);
  copy_rows(x.data(), x.stride(), y.data(), y.stride(), 5, 1, 3);
  EXPECT_TRUE(std::isnan(y.row(0)[0]));
  EXPECT_TRUE(testing::same_bits(y.row(2), x.row(2), 5));
  EXPECT_TRUE(y.guards_are_intact());
}

}  // namespace
}  // namespace tern::cpu
