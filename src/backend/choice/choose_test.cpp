// The choice: eligibility before pins, pins before measurements, measurements before the prior, one
// loop over all candidates.
#include "backend/choice/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace tern::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Problem problem(std::int64_t m = 8, std::int64_t n = 4096, std::int64_t k = 4096) {
  return {.op = "product", .dtypes = "f32", .layout = "rows", .n = n, .k = k, .m = m};
}

// A candidate that the prior puts at `us`.
Candidate candidate(std::string_view name, double us, std::string refusal = {}) {
  Work work;
  work.launches = us;
  return {name, std::move(refusal), work};
}

DeviceRates microsecond_launches() {
  DeviceRates rates;
  rates.launch = microseconds(1);
  return rates;
}

VariantTime time(std::string name, double us, double spread_us = 0, double predicted_us = 1) {
  VariantTime t;
  t.variant = std::move(name);
  t.median = microseconds(us);
  t.spread = microseconds(spread_us);
  t.predicted = microseconds(predicted_us);
  t.samples = 7;
  return t;
}

TableRow row(const Problem& p, std::vector<VariantTime> times) {
  TableRow r;
  r.problem = p;
  r.times = std::move(times);
  return r;
}

struct Choosing : ::testing::Test {
  Result<Choice> pick(const std::vector<Candidate>& candidates, const Problem& p = problem()) {
    return choose(p, candidates, {microsecond_launches(), use_table ? &table : nullptr, pins},
                  warnings);
  }
  MeasuredTable table;
  bool use_table = false;
  std::vector<Pin> pins;
  std::vector<std::string> warnings;
};

TEST_F(Choosing, TheSmallestPredictedTimeWins) {
  const Choice c = pick({candidate("a", 30), candidate("b", 10), candidate("c", 20)}).value();
  EXPECT_EQ(c.index, 1u);
  EXPECT_EQ(c.basis, Basis::kPredicted);
  EXPECT_NEAR(c.margin.value(), 1.0, 1e-9);
  EXPECT_EQ(c.reason, "predicted 10.0 us, 2.0 times faster than c (predicted)");
}

TEST_F(Choosing, EqualTimesKeepTheOrderOfTheTable) {
  EXPECT_EQ(pick({candidate("a", 10), candidate("b", 10)}).value().index, 0u);
}

TEST_F(Choosing, RefusedVariantsNeverRunAndAreNamed) {
  const Choice c =
      pick({candidate("a", 1, "needs AVX512F"), candidate("b", 10), candidate("c", 12)}).value();
  EXPECT_EQ(c.index, 1u);
  EXPECT_THAT(c.reason, HasSubstr("; a needs AVX512F"));
  EXPECT_EQ(pick({candidate("a", 1, "needs X"), candidate("b", 10)}).value().reason,
            "the only variant that runs here; a needs X");
}

TEST_F(Choosing, NothingEligibleIsAnErrorThatNamesShapesAndReasons) {
  const auto c = pick({candidate("a", 1, "needs X"), candidate("b", 2, "is not there")});
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(c.error().message(), HasSubstr("n 4096, k 4096, m 5-8"));
  EXPECT_THAT(c.error().message(), HasSubstr("a needs X, b is not there"));
}

TEST_F(Choosing, APinTakesEffect) {
  pins = {{"product", "c"}, {"other", "a"}};
  const Choice c = pick({candidate("a", 30), candidate("b", 10), candidate("c", 90)}).value();
  EXPECT_EQ(c.index, 2u);
  EXPECT_EQ(c.basis, Basis::kPinned);
  EXPECT_EQ(c.reason, "pinned");
  EXPECT_THAT(warnings, IsEmpty());
}

// BR-23: a forced variant is ineligible and silently ignored.
TEST_F(Choosing, Br23_APinOnAnIneligibleVariantIsRefusedAloud) {
  pins = {{"product", "a"}};
  const std::vector<Candidate> all = {candidate("a", 1, "needs AVX512F"), candidate("b", 10),
                                      candidate("c", 12)};
  EXPECT_EQ(pick(all).value().index, 1u);
  EXPECT_THAT(warnings, ElementsAre("--pin product:a cannot be followed: a needs AVX512F; b runs "
                                    "instead"));
  EXPECT_EQ(pick(all).value().index, 1u);
  EXPECT_EQ(warnings.size(), 1u) << "said once, however many ops there are";
}

TEST_F(Choosing, UnknownNamesAreErrorsAtTheStart) {
  const std::vector<Pinnable> known = {{"product", {"a", "b"}}, {"norm", {"a"}}};
  EXPECT_TRUE(check_pins(std::vector<Pin>{{"product", "b"}, {"norm", "a"}}, known).ok());
  const auto variant = check_pins(std::vector<Pin>{{"norm", "b"}}, known);
  ASSERT_FALSE(variant.ok());
  EXPECT_EQ(variant.error().code(), ErrorCode::kUsage);
  EXPECT_EQ(variant.error().message(), "--pin norm:b: norm has the variants a");
  const auto op = check_pins(std::vector<Pin>{{"teleport", "a"}}, known);
  EXPECT_EQ(op.error().message(),
            "--pin teleport:a: there is no op 'teleport'; pinnable are product, norm");
  for (const char* text : {"", "product", ":a", "product:"})
    EXPECT_FALSE(parse_pins(std::vector<std::string>{text}).ok()) << text;
  EXPECT_EQ(parse_pins(std::vector<std::string>{"a:b:c"}).value()[0].variant, "b:c");
}

TEST_F(Choosing, WhatWasMeasuredGoesBeforeThePrior) {
  use_table = true;
  table.put(row(problem(), {time("a", 9), time("b", 14)}));
  const Choice c = pick({candidate("a", 30), candidate("b", 10)}).value();
  EXPECT_EQ(c.index, 0u);
  EXPECT_EQ(c.basis, Basis::kMeasured);
  EXPECT_EQ(c.reason, "measured 9.0 us, 56 % ahead of b (measured)");
}

// A bucket never relaxes eligibility.
TEST_F(Choosing, MeasuredButRefusedDoesNotRun) {
  use_table = true;
  table.put(row(problem(), {time("a", 1), time("b", 14)}));
  EXPECT_EQ(pick({candidate("a", 30, "reads aligned rows only"), candidate("b", 10)}).value().index,
            1u);
}

TEST_F(Choosing, AnotherShapeTypeOrAlignmentIsAnotherBucket) {
  use_table = true;
  table.put(row(problem(), {time("a", 1), time("b", 90)}));
  const std::vector<Candidate> all = {candidate("a", 30), candidate("b", 10)};
  EXPECT_EQ(pick(all, problem(5)).value().basis, Basis::kMeasured) << "5-8 is one bucket";
  EXPECT_NE(pick(all, problem(9)).value().basis, Basis::kMeasured);
  EXPECT_NE(pick(all, problem(8, 4095)).value().basis, Basis::kMeasured);
  Problem other = problem();
  other.alignment = 4;
  EXPECT_NE(pick(all, other).value().basis, Basis::kMeasured);
  other = problem();
  other.dtypes = "f16";
  EXPECT_EQ(pick(all, other).value().basis, Basis::kPredicted) << "no neighbours of this type";
}

TEST_F(Choosing, UnmeasuredIsThePriorScaledByNeighboursAndMarkedSo) {
  use_table = true;
  // b is four times slower than the prior thinks, wherever it was measured.
  table.put(row(problem(16), {time("a", 20, 0, 20), time("b", 40, 0, 10)}));
  table.put(row(problem(4), {time("a", 20, 0, 20), time("b", 40, 0, 10)}));
  const Choice c = pick({candidate("a", 20), candidate("b", 10)}).value();
  EXPECT_EQ(c.index, 0u);
  EXPECT_EQ(c.basis, Basis::kInterpolated);
  EXPECT_NEAR(c.scores[1].time.value(), 40e-6, 1e-9);
  EXPECT_EQ(c.reason, "interpolated 20.0 us, 2.0 times faster than b (interpolated)");
}

TEST_F(Choosing, WithoutAShapeTheOrderOfTheTableHolds) {
  const std::vector<Candidate> all = {{"a", "needs X"}, {"b", ""}, {"c", ""}};
  Choice c = choose("op", all, pins, warnings).value();
  EXPECT_EQ(c.index, 1u);
  EXPECT_EQ(c.reason, "first of 3 in the prior order; a needs X");
  pins = {{"op", "c"}};
  c = choose("op", all, pins, warnings).value();
  EXPECT_EQ(c.index, 2u);
  EXPECT_EQ(c.reason, "pinned");
}

// W18: a rule that comes early cannot hide a later, faster variant.
TEST_F(Choosing, TheLastCandidateCanWinOverAMeasuredOne) {
  use_table = true;
  table.put(row(problem(), {time("a", 20), time("b", 30)}));
  const Choice c = pick({candidate("a", 5), candidate("b", 6), candidate("c", 15)}).value();
  EXPECT_EQ(c.index, 2u);
  EXPECT_EQ(c.basis, Basis::kPredicted);
}

TEST_F(Choosing, TheIncumbentStaysUntilItIsBeatenClearly) {
  use_table = true;
  table.put(row(problem(), {time("a", 100), time("b", 110)}));
  table.put(row(problem(), {time("a", 100), time("b", 98)}));  // 2 %: too little
  EXPECT_EQ(pick({candidate("a", 1), candidate("b", 1)}).value().index, 0u);
  EXPECT_THAT(pick({candidate("a", 1), candidate("b", 1)}).value().reason,
              HasSubstr("2.0 % behind b (measured), too little to change"));
  table.put(row(problem(), {time("a", 100, 4), time("b", 93, 1)}));  // 7 %, spread 4 %
  EXPECT_EQ(pick({candidate("a", 1), candidate("b", 1)}).value().index, 0u);
  table.put(row(problem(), {time("a", 100, 1), time("b", 93, 1)}));
  EXPECT_EQ(pick({candidate("a", 1), candidate("b", 1)}).value().index, 1u);
}

// B.6: the sweep on made-up candidates; the kernels of the CPU have their own.
TEST_F(Choosing, B6_RandomShapesAreChosenConsistently) {
  std::mt19937 random(3);
  const auto number = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  use_table = true;
  for (int i = 0; i < 3000; ++i) {
    const Problem p = problem(number(1, 1024), 64 << number(0, 3), 64 << number(0, 3));
    std::vector<Candidate> all;
    for (const char* name : {"a", "b", "c", "d"})
      all.push_back(candidate(name, number(1, 1000), number(0, 4) == 0 ? "is not there" : ""));
    std::vector<VariantTime> times;
    for (const char* name : {"a", "b", "c"})
      if (number(0, 1) == 0)
        times.push_back(time(name, number(1, 1000), number(0, 20), number(1, 1000)));
    if (!times.empty() && number(0, 2) == 0) table.put(row(p, times));
    pins.clear();
    if (number(0, 3) == 0)
      pins = {{"product", all[static_cast<std::size_t>(number(0, 3))].name.data()}};
    warnings.clear();
    const auto picked = pick(all, p);
    if (!picked.ok()) {
      for (const Candidate& c : all) EXPECT_FALSE(c.refusal.empty());
      continue;
    }
    const Choice& c = *picked;
    ASSERT_TRUE(all[c.index].refusal.empty());
    if (!pins.empty()) {
      ASSERT_TRUE(all[c.index].name == pins[0].variant || warnings.size() == 1);
    }
    if (c.basis == Basis::kPinned) continue;
    const TableRow* measured = table.find(p);
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (!all[j].refusal.empty() || c.scores[j].time >= c.expected) continue;
      // Faster and passed over: only what does not beat the incumbent.
      ASSERT_TRUE(measured && measured->incumbent == all[c.index].name);
      ASSERT_FALSE(beats(*measured->find(all[j].name), *measured->find(all[c.index].name)));
    }
  }
}

}  // namespace
}  // namespace tern::backend
