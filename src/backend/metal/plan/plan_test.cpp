// Plans for a machine that is not here.
#include <gtest/gtest.h>

#include "backend/metal/metal_backend.h"
#include "backend/metal/plan/metal_plan.h"

namespace tern::metal {
namespace {

TEST(MetalPlan, FamiliesAreReadFromNames) {
  EXPECT_EQ(family_number("apple9"), 9);
  EXPECT_EQ(family_number("apple10"), 10);
  EXPECT_EQ(family_number("apple"), 0);
  EXPECT_EQ(family_number("apple9x"), 0);
  EXPECT_EQ(family_number("sm_90"), 0);
}

}  // namespace
}  // namespace tern::metal
