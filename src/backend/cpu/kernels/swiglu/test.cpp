// Every variant of swiglu: four units of the last place over the whole range, and the limits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/kernels/elementwise/test_rows.h"
#include "backend/cpu/kernels/swiglu/swiglu.h"
#include "reference/swiglu.h"

namespace tern::cpu {
namespace {

using testing::Rows;

class Swiglu : public ::testing::TestWithParam<SwigluVariant> {
 protected:
  void SetUp() override {
    if (!cpu_features().contains(GetParam().needs)) GTEST_SKIP() << "needs another CPU";
  }
  // silu of many values, through up = 1.
  std::vector<float> silu(std::vector<float> gate) const {
    std::vector<float> up(gate.size(), 1.0F);
    std::vector<float> y(gate.size());
    const auto width = static_cast<std::int64_t>(gate.size());
    const int columns = static_cast<int>(width);
    GetParam().run({gate.data(), width, up.data(), width, y.data(), width, columns}, 0, 1, 0,
                   columns);
    return y;
  }
};

TEST_P(Swiglu, SiluIsWithinFourUlpOverTheWholeRange) {
  std::vector<float> gate;
  for (double x = 1e-38; x < 3e38; x *= 1.013) {
    gate.push_back(static_cast<float>(x));
    gate.push_back(static_cast<float>(-x));
  }
  for (double x = -125; x < 125; x += 0.0037) gate.push_back(static_cast<float>(x));
  const std::vector<float> y = silu(gate);
  for (std::size_t i = 0; i < gate.size(); ++i) {
    ASSERT_LE(testing::ulp_distance(y[i], reference::silu(gate[i])), 4)
        << "silu(" << gate[i] << ") = " << y[i] << ", expected " << reference::silu(gate[i]);
  }
}

TEST_P(Swiglu, LimitsAreNumbers) {
  const float inf = std::numeric_limits<float>::infinity();
  const float most = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> y =
      silu({-inf, inf, -most, most, 0.0F, -0.0F, tiny, -200.0F, std::nanf("")});
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], inf);
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(y[3], most);
  EXPECT_EQ(y[4], 0);
  EXPECT_EQ(y[5], 0);
  EXPECT_LE(y[6], tiny);
  EXPECT_EQ(y[7], 0);
  EXPECT_TRUE(std::isnan(y[8]));
}

TEST_P(Swiglu, TakesGateAndUpFromOneBufferOrTwo) {
  for (const int width : {1, 7, 8, 9, 19}) {
    Rows joined(3, 2 * width);
    joined.fill_normal(21, 3);
    Rows y(3, width);
    GetParam().run({joined.data(), joined.stride(), joined.data() + width, joined.stride(),
                    y.data(), y.stride(), width},
                   0, 3, 0, width);
    Rows parts(3, width);  // the same in two column ranges, in place of a copy of the gate
    for (int r = 0; r < 3; ++r) std::copy_n(joined.row(r), width, parts.row(r));
    const SwigluArgs in_place{
        parts.data(),   parts.stride(), joined.data() + width, joined.stride(), parts.data(),
        parts.stride(), width};
    GetParam().run(in_place, 0, 3, 0, width / 2);
    GetParam().run(in_place, 0, 3, width / 2, width);
    for (int r = 0; r < 3; ++r) {
      for (int c = 0; c < width; ++c) {
        const float expected = reference::swiglu(joined.row(r)[c], joined.row(r)[width + c]);
        ASSERT_LE(testing::ulp_distance(y.row(r)[c], expected), 5);  // one product more
      }
      EXPECT_TRUE(testing::same_bits(parts.row(r), y.row(r), width));
    }
    EXPECT_TRUE(y.guards_are_intact());
    EXPECT_TRUE(parts.guards_are_intact());
  }
}

TEST_P(Swiglu, TellsGateFromUp) {
  float gate = 1;
  float up = 3;
  float y = 0;
  GetParam().run({&gate, 1, &up, 1, &y, 1, 1}, 0, 1, 0, 1);
  EXPECT_FLOAT_EQ(y, 2.193175736F);  // 3 / (1 + 1/e); swapped it would be 3 / (1 + e^-3) = 2.8577
}

INSTANTIATE_TEST_SUITE_P(Variants, Swiglu,
                         ::testing::ValuesIn(swiglu_variants().begin(), swiglu_variants().end()),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace tern::cpu
