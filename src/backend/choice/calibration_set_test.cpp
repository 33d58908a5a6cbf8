// Which shapes are calibrated, and files of shapes.
#include "backend/choice/calibration_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tern::backend {
namespace {

using ::testing::HasSubstr;

bool has_rows(const CalibrationShape& s, std::int64_t m) {
  return std::find(s.rows.begin(), s.rows.end(), m) != s.rows.end();
}

// BR-24: shapes where a general kernel is known to starve are candidates of the calibration.
TEST(CalibrationSet, Br24_ShapesThatStarveGeneralKernelsAreInTheDefaultSet) {
  for (const bool quick : {false, true}) {
    const std::vector<CalibrationShape> shapes = default_shapes(quick);
    for (const char* format : {"f32", "f16"}) {
      const auto any = [&](auto&& is) {
        return std::any_of(shapes.begin(), shapes.end(),
                           [&](const CalibrationShape& s) { return s.format == format && is(s); });
      };
      EXPECT_TRUE(any([](const auto& s) { return s.n < 64 && has_rows(s, 1); })) << "few outputs";
      for (const std::int64_t m : {5, 6, 17})
        EXPECT_TRUE(any([m](const auto& s) {
          return s.n == 1024 && s.k == 1024 && has_rows(s, m);
        })) << m;
      EXPECT_TRUE(any([](const auto& s) { return s.n <= 128 && s.k >= 8192; })) << "long sums";
      EXPECT_TRUE(any([](const auto& s) { return s.n >= 32000; })) << "a vocabulary";
    }
  }
}

TEST(CalibrationSet, FilesNameShapesALine) {
  const auto shapes = parse_shapes("# shapes\n f16 4096 576 1,8,512 # mine\n\nf32 64 8192\r\n");
  ASSERT_TRUE(shapes.ok()) << shapes.error().message();
  ASSERT_EQ(shapes->size(), 2u);
  EXPECT_EQ((*shapes)[0], (CalibrationShape{"f16", 4096, 576, {1, 8, 512}}));
  EXPECT_EQ((*shapes)[1], (CalibrationShape{"f32", 64, 8192, default_rows(false)}));
  EXPECT_TRUE(parse_shapes("")->empty());
}

TEST(CalibrationSet, LinesThatAreNoShapesAreRefusedByNumber) {
  for (const char* line :
       {"f16", "f16 12", "f16 0 4", "f16 4 -4", "f16 4 4 0", "f16 4 4 ,", "f16 4 4 1;2", "f16 4x 4",
        "f16 99999999999999999999 4", "f16 4 4 1 1"}) {
    const auto shapes = parse_shapes(std::string("f32 4 4 1\n") + line + "\n");
    ASSERT_FALSE(shapes.ok()) << line;
    EXPECT_THAT(shapes.error().message(), HasSubstr("line 2: expected FORMAT OUTPUTS INPUTS"));
  }
}

}  // namespace
}  // namespace tern::backend
