// The worked example, run as a test in every order and with faults.
#include "saxpy.h"

#include <gtest/gtest.h>

#include "swmetal/swmetal.h"

namespace example {
namespace {

class Saxpy : public testing::TestWithParam<swm_order> {
 protected:
  void SetUp() override {
    swm_reset();
    swm_set_order(GetParam(), 7);
  }
};

TEST_P(Saxpy, GivesTheFormulaAndTheSum) {
  std::vector<float> x(1000), y(1000);
  double sum = 0;
  for (size_t i = 0; i < x.size(); i++) {
    x[i] = static_cast<float>(i % 17);
    y[i] = static_cast<float>(i % 5);
    sum += 2.0 * x[i] + y[i];
  }
  const Result r = saxpy(EXAMPLE_LIBRARY, 2.0f, x, y);
  ASSERT_EQ(r.error, "");
  for (size_t i = 0; i < x.size(); i++) ASSERT_EQ(r.y[i], 2.0f * x[i] + y[i]) << i;
  EXPECT_EQ(r.sum, static_cast<float>(sum));  // whole numbers below 2^24
}

INSTANTIATE_TEST_SUITE_P(Orders, Saxpy,
                         testing::Values(SWM_ORDER_FORWARD, SWM_ORDER_REVERSE, SWM_ORDER_RANDOM));

TEST(SaxpyFaults, AreReported) {
  swm_reset();
  swm_set_no_device(1);
  EXPECT_EQ(saxpy(EXAMPLE_LIBRARY, 1, {1}, {1}).error, "there is no Metal device");
  swm_reset();
  swm_fail_nth(SWM_ALLOCATION, 2);
  EXPECT_EQ(saxpy(EXAMPLE_LIBRARY, 1, {1}, {1}).error, "out of memory");
  swm_reset();
  EXPECT_NE(saxpy("nowhere.metallib", 1, {1}, {1}).error.find("no such file"), std::string::npos);
  EXPECT_EQ(saxpy(EXAMPLE_LIBRARY, 1, {1}, {1}).sum, 2.0f);
}

}  // namespace
}  // namespace example
