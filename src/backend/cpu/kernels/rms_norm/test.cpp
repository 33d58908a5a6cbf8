// Every variant of rms_norm against the f64 reference.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/kernels/elementwise/test_rows.h"
#include "backend/cpu/kernels/rms_norm/rms_norm.h"
#include "reference/rms_norm.h"

namespace tern::cpu {
namespace {

using testing::Rows;

class RmsNorm : public ::testing::TestWithParam<RmsNormVariant> {
 protected:
  void SetUp() override {
    if (!cpu_features().contains(GetParam().needs)) GTEST_SKIP() << "needs another CPU";
  }
};

std::vector<float> reference_row(const float* x, const float* w, int heads, int width, float eps) {
  std::vector<float> y(static_cast<std::size_t>(heads * width));
  for (int h = 0; h < heads; ++h) {
    reference::rms_norm(x + h * width, w, width, eps, y.data() + h * width);
  }
  return y;
}

// The scale and two products are rounded to f32 once each, the reference once: 3 * 2^-24, and half
// of a unit more.
void expect_close(const float* y, const std::vector<float>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double e = static_cast<double>(expected[i]);
    ASSERT_NEAR(static_cast<double>(y[i]), e, 4 * 0x1p-24 * std::fabs(e)) << i;
  }
}

TEST_P(RmsNorm, IsCloseToTheReferenceForRaggedWidthsAndHeads) {
  for (const int width : {1, 7, 8, 9, 15, 16, 17, 31, 96, 128, 576, 2049}) {
    for (const int heads : {1, 3}) {
      Rows x(5, heads * width);
      Rows y(5, heads * width, 3);
      Rows w(1, width);
      x.fill_normal(1);
      w.fill_normal(2);
      RmsNormArgs args{x.data(), x.stride(), w.row(0), y.data(), y.stride(), heads, width, 1e-5F};
      GetParam().run(args, 0, 2);
      GetParam().run(args, 2, 5);
      for (int r = 0; r < 5; ++r) {
        expect_close(y.row(r), reference_row(x.row(r), w.row(0), heads, width, 1e-5F));
      }
      EXPECT_TRUE(y.guards_are_intact());
    }
  }
}

TEST_P(RmsNorm, WritesOnlyTheGivenRows) {
  Rows x(3, 20);
  Rows y(3, 20);
  Rows w(1, 20);
  x.fill_normal(3);
  w.fill_normal(4);
  GetParam().run({x.data(), x.stride(), w.row(0), y.data(), y.stride(), 1, 20, 1e-6F}, 1, 2);
  EXPECT_TRUE(std::isnan(y.row(0)[19]));
  EXPECT_FALSE(std::isnan(y.row(1)[0]));
  EXPECT_TRUE(std::isnan(y.row(2)[0]));
  GetParam().run({x.data(), x.stride(), w.row(0), y.data(), y.stride(), 1, 20, 1e-6F}, 0, 0);
  EXPECT_TRUE(std::isnan(y.row(0)[0]));
}

TEST_P(RmsNorm, AddsTheResidualFirstAndWorksInPlace) {
  const int width = 37;
  Rows x(4, width);
  Rows residual(4, width, 1);
  Rows y(4, width);
  Rows w(1, width);
  x.fill_normal(5);
  residual.fill_normal(6);
  w.fill_normal(7);
  Rows sum(4, width);
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < width; ++c) sum.row(r)[c] = x.row(r)[c] + residual.row(r)[c];
  }
  RmsNormArgs args{x.data(), x.stride(), w.row(0), y.data(), y.stride(), 1, width, 1e-5F};
  args.residual = residual.data();
  args.residual_row_stride = residual.stride();
  args.sum = x.data();  // the residual stream itself
  args.sum_row_stride = x.stride();
  GetParam().run(args, 0, 4);
  for (int r = 0; r < 4; ++r) {
    EXPECT_TRUE(testing::same_bits(x.row(r), sum.row(r), width));
    expect_close(y.row(r), reference_row(sum.row(r), w.row(0), 1, width, 1e-5F));
  }
  // In place: y is x.
  GetParam().run({sum.data(), sum.stride(), w.row(0), sum.data(), sum.stride(), 1, width, 1e-5F}, 0,
                 4);
  for (int r = 0; r < 4; ++r) EXPECT_TRUE(testing::same_bits(sum.row(r), y.row(r), width));
}

TEST_P(RmsNorm, HandlesZeroHugeAndSpecialRows) {
  const int width = 19;
  Rows x(5, width);
  Rows y(5, width);
  Rows w(1, width);
  x.fill_normal(8);
  for (int c = 0; c < width; ++c) {
    w.row(0)[c] = 1;
    x.row(0)[c] = 0;
    x.row(1)[c] = c % 2 == 0 ? 1e16F : -1e16F;
    x.row(2)[c] = 3e38F;
  }
  x.row(3)[18] = std::numeric_limits<float>::quiet_NaN();
  x.row(4)[4] = std::numeric_limits<float>::infinity();
  GetParam().run({x.data(), x.stride(), w.row(0), y.data(), y.stride(), 1, width, 0}, 0, 5);
  for (int c = 0; c < width; ++c) {
    EXPECT_EQ(y.row(0)[c], 0);
    EXPECT_FLOAT_EQ(y.row(1)[c], c % 2 == 0 ? 1.0F : -1.0F);
    EXPECT_FLOAT_EQ(y.row(2)[c], 1.0F);
    EXPECT_TRUE(std::isnan(y.row(3)[c]));
    EXPECT_EQ(std::isnan(y.row(4)[c]), c == 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, RmsNorm,
                         ::testing::ValuesIn(rms_norm_variants().begin(),
                                             rms_norm_variants().end()),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace tern::cpu
