// rms_norm, embed, gather_rows and argmax against the reference functions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/argmax.h"
#include "reference/embed.h"
#include "reference/rms_norm.h"
#include "tests/parity/metal/expectation.h"
#include "tests/parity/metal/rig.h"

namespace tern::metal_tests {
namespace {

class MetalRows : public testing::Test {
 protected:
  void SetUp() override { rig_ = Rig::open(); }
  std::unique_ptr<Rig> rig_;
};

TEST_F(MetalRows, RmsNormStaysInClassF) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const int width : {1, 31, 96, 128, 1000, 2048, 5120})
    for (const float magnitude : {1.0F, 1e16F, 1e-16F, 0.0F}) {
      const auto n = static_cast<std::size_t>(width);
      const std::size_t stride = n + 3;
      std::vector<float> x(stride * 2);
      std::vector<float> weight(n);
      for (float& v : x) v = normal(random) * magnitude;
      for (float& v : weight) v = normal(random);
      const auto weights = rig_->memory(n * 4);
      const auto arena = rig_->memory(stride * 5 * 4);
      weights->put(0, weight);
      arena->put(0, x);
      TernRmsNormParams p{};
      p.x_row_stride = stride;
      p.y = stride * 3 * 4;
      p.y_row_stride = stride;
      p.width = static_cast<tern_u32>(width);
      p.runs = 1;
      p.eps = magnitude == 0.0F ? 0.0F : 1e-6F;
      p.axis = kTernAllRows;
      ASSERT_EQ(rig_->run({metal::rms_norm_launch(p, 2)}, *weights, *arena, *arena), "");
      const auto found = arena->get<float>(0, stride * 5);
      for (std::size_t k = 0; k < stride; ++k)
        ASSERT_TRUE(is_guard(found[2 * stride + k])) << "before the output";
      for (std::size_t r = 0; r < 2; ++r) {
        std::vector<float> expected(n);
        reference::rms_norm(&x[r * stride], weight.data(), width, p.eps, expected.data());
        const float* y = &found[(3 + r) * stride];
        for (std::size_t k = 0; k < n; ++k) {
          // Class F for a row reduction of K values: the scale is off by 4 sqrt(K) 2^-24 of itself
          // at most, and three roundings follow.
          const double bound =
              (4 * std::sqrt(static_cast<double>(width)) + 4) * 0x1p-24 * std::fabs(expected[k]);
          ASSERT_LE(std::fabs(static_cast<double>(y[k]) - static_cast<double>(expected[k])), bound)
              << "width " << width << " column " << k;
        }
        for (std::size_t k = n; k < stride; ++k) ASSERT_TRUE(is_guard(y[k]));
      }
    }
}

TEST_F(MetalRows, RmsNormOverRunsEqualsEachRunAlone) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> x(8 * 128);
  std::vector<float> weight(128);
  for (float& v : x) v = normal(random);
  for (float& v : weight) v = normal(random);
  const auto weights = rig_->memory(512);
  const auto arena = rig_->memory(x.size() * 8);
  weights->put(0, weight);
  arena->put(0, x);
  TernRmsNormParams p{};
  p.x_row_stride = x.size();
  p.y = x.size() * 4;
  p.y_row_stride = x.size();
  p.width = 128;
  p.runs = 8;
  p.eps = 1e-6F;
  p.axis = kTernAllRows;
  ASSERT_EQ(rig_->run({metal::rms_norm_launch(p, 1)}, *weights, *arena, *arena), "");
  const auto together = arena->get<float>(p.y, x.size());
  p.runs = 1;
  for (std::uint64_t run = 0; run < 8; ++run) {
    TernRmsNormParams one = p;
    one.x = run * 512;
    ASSERT_EQ(rig_->run({metal::rms_norm_launch(one, 1)}, *weights, *arena, *arena), "");
    const auto alone = arena->get<float>(p.y, 128);
    for (std::size_t k = 0; k < 128; ++k) ASSERT_EQ(alone[k], together[run * 128 + k]);
  }
}

TEST_F(MetalRows, EmbedDecodesPackedRowsExactly) {
  std::mt19937 random(5);
  for (const std::int64_t width : {128, 384, 640}) {
    const std::int64_t rows = 1003;
    const auto blocks = random_q1(rows, width, random);
    const auto tiles = split_weight(blocks, rows, width);
    const auto weights = rig_->memory(tiles.size());
    weights->put(0, tiles);
    const std::vector<std::int32_t> ids = {0, 1002, 7, 7, 16, 999, -1, 1003};
    const auto n = static_cast<std::size_t>(width);
    const std::size_t stride = n + 9;
    const auto arena = rig_->memory(4096 + ids.size() * stride * 4);
    arena->put(0, ids);
    arena->put(256, std::vector<std::uint32_t>{0});
    TernEmbedParams p{};
    p.y = 4096;
    p.y_row_stride = stride;
    p.status = 256;
    p.table_rows = static_cast<tern_u32>(rows);
    p.width = static_cast<tern_u32>(width);
    p.axis = kTernAllRows;
    const auto count = static_cast<std::uint32_t>(ids.size());
    ASSERT_EQ(rig_->run({metal::embed_launch(p, count - 2)}, *weights, *arena, *arena), "");
    EXPECT_EQ(arena->get<std::uint32_t>(256, 1)[0], 0U) << "every id was in range";
    ASSERT_EQ(rig_->run({metal::embed_launch(p, count)}, *weights, *arena, *arena), "");
    EXPECT_EQ(arena->get<std::uint32_t>(256, 1)[0], 1U) << "two ids were out of range";
    const auto found = arena->get<float>(4096, ids.size() * stride);
    for (std::size_t r = 0; r < ids.size(); ++r) {
      std::vector<float> expected(n, 0.0F);
      if (ids[r] >= 0 && ids[r] < rows)
        for (std::size_t g = 0; g < n / 128; ++g)
          quant::Q1G128::decode_block(
              &blocks[(static_cast<std::size_t>(ids[r]) * (n / 128) + g) * 18], &expected[g * 128]);
      for (std::size_t k = 0; k < n; ++k) ASSERT_EQ(found[r * stride + k], expected[k]);
      for (std::size_t k = n; k < stride; ++k) ASSERT_TRUE(is_guard(found[r * stride + k]));
    }
  }
}

TEST_F(MetalRows, GatherCopiesTheRowsThatAreAskedFor) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (const std::size_t width : {1U, 255U, 256U, 4097U}) {
    std::vector<float> x(width * 5);
    for (float& v : x) v = normal(random);
    const std::vector<std::uint32_t> rows = {4, 0, 4};
    const auto arena = rig_->memory(256 + (x.size() + width * 5) * 4);
    arena->put(0, rows);
    arena->put(256, x);
    TernGatherParams p{};
    p.x = 256;
    p.x_row_stride = width;
    p.y = 256 + x.size() * 4;
    p.y_row_stride = width;
    p.width = static_cast<tern_u32>(width);
    p.axis = kTernAllRows;
    ASSERT_EQ(rig_->run({metal::gather_launch(p, 3)}, *arena, *arena, *arena), "");
    const auto y = arena->get<float>(p.y, width * 4);
    for (std::size_t r = 0; r < 3; ++r)
      for (std::size_t k = 0; k < width; ++k) ASSERT_EQ(y[r * width + k], x[rows[r] * width + k]);
    for (std::size_t k = 3 * width; k < 4 * width; ++k) ASSERT_TRUE(is_guard(y[k]));
  }
}

// argmax of several rows against the reference.
void expect_argmax(Rig& rig, const std::vector<std::vector<float>>& rows) {
  const std::size_t width = rows[0].size();
  const std::size_t stride = width + 2;
  const std::uint32_t parts = metal::argmax_parts(width, 16);
  const std::uint64_t parts_at = (rows.size() * stride * 4 + 255) / 256 * 256;
  const std::uint64_t result_at = parts_at + rows.size() * parts * sizeof(TernArgmax);
  const auto arena = rig.memory(result_at + (rows.size() + 1) * sizeof(TernArgmax));
  for (std::size_t r = 0; r < rows.size(); ++r) arena->put(r * stride * 4, rows[r]);
  TernArgmaxParams p{};
  p.x_row_stride = stride;
  p.parts = parts_at;
  p.result = result_at;
  p.width = width;
  p.part_count = parts;
  p.axis = kTernAllRows;
  const auto count = static_cast<std::uint32_t>(rows.size());
  ASSERT_EQ(rig.run({metal::argmax_parts_launch(p, count), metal::argmax_merge_launch(p, count)},
                    *arena, *arena, *arena),
            "");
  const auto found = arena->get<TernArgmax>(result_at, rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const reference::Argmax e =
        reference::argmax(rows[r].data(), 0, static_cast<std::int64_t>(width));
    EXPECT_EQ(found[r].index, e.index) << "width " << width << " row " << r;
    EXPECT_EQ((found[r].flags & kTernArgmaxNan) != 0, e.has_nan);
    EXPECT_EQ((found[r].flags & kTernArgmaxFinite) != 0, e.has_finite);
  }
}

TEST_F(MetalRows, ArgmaxTakesTheLowestIndexAndNeverANan) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t width : {1U, 31U, 1023U, 1024U, 1025U, 20001U}) {
    std::vector<std::vector<float>> rows;
    rows.emplace_back(width);
    for (float& v : rows.back()) v = normal(random);
    rows.push_back(rows.back());
    rows.back()[width - 1] = 100;  // in the last lane
    rows.push_back(rows.back());
    rows.back()[width / 2] = 100;  // a tie across blocks
    rows.emplace_back(width, 0.25F);
    rows.emplace_back(width, -inf);
    rows.emplace_back(width, -inf);
    rows.back()[width / 3] = -5;
    rows.emplace_back(width, nan);
    rows.emplace_back(width, 1.0F);
    rows.back()[0] = nan;
    rows.emplace_back(width, -0.0F);
    rows.back()[width - 1] = 0.0F;
    expect_argmax(*rig_, rows);
  }
}

TEST_F(MetalRows, SmallArgmaxOfManyRows) {
  expect_argmax(*rig_, std::vector<std::vector<float>>(12, std::vector<float>(2500, 1.5F)));
}

}  // namespace
}  // namespace tern::metal_tests
