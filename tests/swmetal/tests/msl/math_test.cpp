// Floating-point functions of the shim against double references.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "runner.h"

namespace swmetal_test {
namespace {

constexpr unsigned kN = 64;
constexpr double kTolerance = 4e-7;  // relative and absolute: a few units in the last place

struct Row1 {
  const char* name;
  double (*reference)(double x);
  double from, to;
};
struct Row2 {
  const char* name;
  double (*reference)(double x, double y);
};

#define SWM_ROW(name, reference, from, to) \
  {#name, [](double x) -> double { return reference; }, from, to},
const Row1 kRows1[] = {
#include "math1.inc"
};
#undef SWM_ROW
#define SWM_ROW(name, reference) {#name, [](double x, double y) -> double { return reference; }},
const Row2 kRows2[] = {
#include "math2.inc"
};
#undef SWM_ROW

using Math = Runner;

void expect_near(double got, double want, const char* name, double x) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << name << "(" << x << ")";
    return;
  }
  const double limit = kTolerance * std::max(1.0, std::fabs(want));
  EXPECT_LE(std::fabs(got - want), limit) << name << "(" << x << ") = " << got << ", not " << want;
}

TEST_F(Math, FunctionsOfOneArgument) {
  const size_t rows = std::size(kRows1);
  std::mt19937 random(1);
  std::vector<float> in(rows * kN), out(rows * kN);
  for (size_t r = 0; r < rows; r++)
    for (unsigned i = 0; i < kN; i++)
      in[r * kN + i] = std::uniform_real_distribution<float>(
          static_cast<float>(kRows1[r].from), static_cast<float>(kRows1[r].to))(random);
  for (size_t r = 0; r < rows; r++) in[r * kN] = static_cast<float>(kRows1[r].from);
  std::vector<unsigned> differences(rows), n = {kN};
  bind(0, in), bind(1, out), bind(2, differences), bind(3, n);
  ASSERT_EQ(run("math1", {kN, 1, 1}, {kN, 1, 1}), "");
  for (size_t r = 0; r < rows; r++) {
    EXPECT_EQ(differences[r], 0u) << kRows1[r].name << ": vectors or halves differ from scalars";
    for (unsigned i = 0; i < kN; i++) {
      const double x = in[r * kN + i];
      expect_near(out[r * kN + i], kRows1[r].reference(x), kRows1[r].name, x);
    }
  }
}

TEST_F(Math, SpecialValues) {
  const size_t rows = std::size(kRows1);
  const float inf = std::numeric_limits<float>::infinity();
  const float specials[] = {0.0f, -0.0f, inf, -inf, std::nanf(""), 1e-40f, 3e38f, -3e38f};
  const unsigned count = static_cast<unsigned>(std::size(specials));
  std::vector<float> in(rows * count), out(rows * count);
  for (size_t i = 0; i < in.size(); i++) in[i] = specials[i % count];
  std::vector<unsigned> differences(rows), n = {count};
  bind(0, in), bind(1, out), bind(2, differences), bind(3, n);
  ASSERT_EQ(run("math1", {count, 1, 1}, {count, 1, 1}), "");
  for (size_t r = 0; r < rows; r++) {
    const std::string name = kRows1[r].name;
    const bool is_periodic = name.find("pi") != std::string::npos || name == "tan";
    const bool is_fract = name == "fract" || name == "sign" || name == "saturate";
    EXPECT_EQ(differences[r], 0u) << name;
    for (unsigned i = 0; i < count && !is_periodic && !is_fract; i++) {
      const double x = in[r * count + i];
      const auto want = static_cast<float>(kRows1[r].reference(x));
      const float got = out[r * count + i];
      if (std::isnan(want) || std::isinf(want)) {
        EXPECT_EQ(std::isnan(want), std::isnan(got)) << name << "(" << x << ")";
        EXPECT_EQ(std::isinf(want), std::isinf(got)) << name << "(" << x << ")";
      }
    }
  }
}

TEST_F(Math, FunctionsOfTwoArguments) {
  const size_t rows = std::size(kRows2);
  std::mt19937 random(2);
  std::vector<float> in(2 * kN), out(rows * kN);
  for (float& f : in) f = std::uniform_real_distribution<float>(0.1f, 9.0f)(random);
  in[5] = in[kN + 5];
  std::vector<unsigned> differences(rows), n = {kN};
  bind(0, in), bind(1, out), bind(2, differences), bind(3, n);
  ASSERT_EQ(run("math2", {kN, 1, 1}, {kN, 1, 1}), "");
  for (size_t r = 0; r < rows; r++) {
    EXPECT_EQ(differences[r], 0u) << kRows2[r].name << ": vectors or halves differ from scalars";
    for (unsigned i = 0; i < kN; i++)
      expect_near(out[r * kN + i], kRows2[r].reference(in[i], in[kN + i]), kRows2[r].name, in[i]);
  }
}

TEST_F(Math, TheRest) {
  std::vector<float> o(39, -1.0f);
  bind(0, o);
  ASSERT_EQ(run("math_rest", {1, 1, 1}, {1, 1, 1}), "");
  // fma of halves rounds once: 0.1h * 0.1h - 0.01h is the error of the product.
  const double h = 0.0999755859375, c = 0.01000213623046875;
  const double want[] = {17,  h * h - c, 1,     1,  2.5, 2,    0.15625, 127, 0,          2,   231,
                         231, 1,         -0.75, -2, 48,  0.75, 6,       3,   1.00000012, 32,  1,
                         10,  30,        1,     1,  5,   3,    8,       1,   2,          0.2, -1};
  for (size_t i = 0; i < 33; i++) expect_near(o[i], want[i], "cell", static_cast<double>(i));
  EXPECT_EQ(o[33], static_cast<float>(0xff80ff00u));
  EXPECT_EQ(o[34], 129.0f);
  EXPECT_EQ(o[35], 1.0f);
  EXPECT_EQ(o[36], 2.0f);
  EXPECT_EQ(o[37], 1.0f) << "a bfloat has eight bits";
  EXPECT_EQ(o[38], 1.0f);
}

}  // namespace
}  // namespace swmetal_test
