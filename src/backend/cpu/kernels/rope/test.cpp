// Every variant of rope against f64 rotations by angles.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/kernels/elementwise/test_rows.h"
#include "backend/cpu/kernels/rope/rope.h"
#include "reference/rope.h"

namespace tern::cpu {
namespace {

using testing::Rows;

class Rope : public ::testing::TestWithParam<RopeVariant> {
 protected:
  void SetUp() override {
    if (!cpu_features().contains(GetParam().needs)) GTEST_SKIP() << "needs another CPU";
  }
};

std::vector<double> frequencies(int pairs) {
  std::vector<double> f;
  for (int j = 0; j < pairs; ++j) f.push_back(std::pow(1e6, -static_cast<double>(j) / pairs));
  return f;
}

struct Case {
  int heads, head_dim, dims;
  RopeMode mode;
};

void check(const RopeVariant& variant, const Case& c, bool in_place) {
  const std::vector<std::int32_t> positions = {0, 1, 1000, 262143};
  const int rows = static_cast<int>(positions.size());
  const int pairs = c.dims / 2;
  const double factor = 1.138629436;
  const std::vector<double> f = frequencies(pairs);
  std::vector<float> cos(static_cast<std::size_t>(rows * pairs) + 1);
  std::vector<float> sin(cos.size());
  rope_tables(f.data(), pairs, factor, positions.data(), cos.data(), sin.data(), 0, 3);
  rope_tables(f.data(), pairs, factor, positions.data(), cos.data(), sin.data(), 3, rows);
  Rows x(rows, c.heads * c.head_dim);
  x.fill_normal(11);
  Rows expected(rows, c.heads * c.head_dim);
  for (int r = 0; r < rows; ++r) {
    for (int h = 0; h < c.heads; ++h) {
      reference::rope(x.row(r) + h * c.head_dim, c.head_dim, c.dims, c.mode == RopeMode::kAdjacent,
                      f.data(), factor, positions[static_cast<std::size_t>(r)],
                      expected.row(r) + h * c.head_dim);
    }
  }
  Rows y(rows, c.heads * c.head_dim, 2);
  Rows original = x;
  RopeArgs args{x.data(),   x.stride(), y.data(), y.stride(), c.heads,
                c.head_dim, c.dims,     c.mode,   cos.data(), sin.data()};
  if (in_place) {
    args.y = x.data();
    args.y_row_stride = x.stride();
  }
  variant.run(args, 0, 1);
  variant.run(args, 1, rows);
  const Rows& result = in_place ? x : y;
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < c.heads * c.head_dim; ++i) {
      // cos, sin, two products and a sum are rounded, and the reference once: each error is at most
      // 2^-24 of factor * (|a| + |b|), and |a| + |b| <= 2 * 6 for these values.
      ASSERT_NEAR(result.row(r)[i], expected.row(r)[i], 4 * 0x1p-24 * factor * 12)
          << "head_dim " << c.head_dim << " dims " << c.dims << " row " << r << " column " << i;
      if (i % c.head_dim >= c.dims) {
        ASSERT_EQ(result.row(r)[i], original.row(r)[i]);
      }
    }
  }
  EXPECT_TRUE(result.guards_are_intact());
}

TEST_P(Rope, IsCloseToTheReferenceInBothPairings) {
  for (const RopeMode mode : {RopeMode::kHalves, RopeMode::kAdjacent}) {
    for (const int head_dim : {32, 64, 96, 128, 256}) {
      check(GetParam(), {3, head_dim, head_dim, mode}, false);
      check(GetParam(), {2, head_dim, head_dim, mode}, true);
    }
  }
}

TEST_P(Rope, RotatesOnlyTheFirstDimensions) {
  for (const RopeMode mode : {RopeMode::kHalves, RopeMode::kAdjacent}) {
    check(GetParam(), {2, 256, 64, mode}, false);
    check(GetParam(), {2, 40, 22, mode}, false);  // 11 pairs: not a multiple of any vector
    check(GetParam(), {2, 32, 0, mode}, false);
    check(GetParam(), {2, 32, 2, mode}, true);
  }
}

TEST_P(Rope, PositionZeroIsTheIdentityAndALateAngleIsRight) {
  const double f = 0.7;
  const std::int32_t positions[] = {0, 262143};
  float cos[2];
  float sin[2];
  rope_tables(&f, 1, 1, positions, cos, sin, 0, 2);
  EXPECT_EQ(cos[0], 1);
  EXPECT_EQ(sin[0], 0);
  // 262143 * 0.7 = 183500.1 = 29204 * 2 pi + 5.756...; an f32 product would be off by up to 0.008.
  const double angle = 183500.1 - 29204 * 6.283185307179586477;
  EXPECT_NEAR(cos[1], std::cos(angle), 1e-7);
  EXPECT_NEAR(sin[1], std::sin(angle), 1e-7);
  const float x[] = {0.3F, -2.5F};
  float y[2];
  GetParam().run({x, 2, y, 2, 1, 2, 2, RopeMode::kHalves, cos, sin}, 0, 1);
  EXPECT_EQ(y[0], x[0]);
  EXPECT_EQ(y[1], x[1]);
}

TEST_P(Rope, ScoresDependOnTheDistanceOnly) {
  const int head_dim = 64;
  const std::vector<double> f = frequencies(head_dim / 2);
  Rows qk(2, head_dim);
  qk.fill_normal(12);
  double first = 0;
  for (const int p : {0, 1000, 100000, 262000}) {
    const std::int32_t positions[] = {p, p + 17};
    std::vector<float> cos(64);
    std::vector<float> sin(64);
    rope_tables(f.data(), 32, 1, positions, cos.data(), sin.data(), 0, 2);
    Rows y(2, head_dim);
    GetParam().run({qk.data(), qk.stride(), y.data(), y.stride(), 1, head_dim, head_dim,
                    RopeMode::kHalves, cos.data(), sin.data()},
                   0, 2);
    double score = 0;
    for (int i = 0; i < head_dim; ++i) {
      score += static_cast<double>(y.row(0)[i]) * static_cast<double>(y.row(1)[i]);
    }
    if (p == 0) first = score;
    EXPECT_NEAR(score, first,
                2e-5);  // 64 products of values below 4, each rotated within 4 * 2^-24 * 12
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, Rope,
                         ::testing::ValuesIn(rope_variants().begin(), rope_variants().end()),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace tern::cpu
