// How variants are measured, on a machine made of numbers: load, heat and first runs are known, so
// is the right answer.
#include "backend/choice/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backend/choice/choose.h"

namespace tern::backend {
namespace {

using ::testing::HasSubstr;

// Time stands still but for what runs. `load` multiplies what a run takes, `clock` divides it.
struct FakeMachine : MachineProbe {
  double clock = 1e9;
  double load = 1;
  double submission = 0;  // seconds per submission
  std::vector<std::string> order;
  std::vector<int> chains;
  std::function<void(int sample)> before_sample;
  int samples = 0;

  double wait = 0;

  [[nodiscard]] MachineState state() override { return {clock, 40}; }
  [[nodiscard]] Seconds waited() override { return Seconds(wait); }

  Contender contender(std::string name, double seconds, double first_seconds = 0) {
    Contender c;
    c.variant = name;
    c.predicted = Seconds(seconds);
    c.bytes = Bytes(1000);
    c.flop = Flop(2000);
    c.run = [this, name, seconds, first = first_seconds](int chain) mutable -> Result<Seconds> {
      if (before_sample) before_sample(samples);
      ++samples;
      order.push_back(name);
      chains.push_back(chain);
      const double op = std::exchange(first, 0) > 0 ? first_seconds_of(seconds) : seconds;
      return Seconds((submission + op * chain) * load * 1e9 / clock);
    };
    return c;
  }
  static double first_seconds_of(double seconds) { return seconds * 500; }
};

MeasureOptions options() {
  MeasureOptions o;
  o.budget = Seconds(0);  // the fewest rounds
  return o;
}

TEST(Measuring, RoundsAreInterleavedAndAtLeastFive) {
  FakeMachine machine;
  const std::vector<Contender> all = {machine.contender("a", 1e-3), machine.contender("b", 2e-3)};
  const Measurement m = measure(all, options(), machine, {}).value();
  EXPECT_EQ(m.rounds, 5);
  ASSERT_EQ(machine.order.size(), 4 + 2 * 6u) << "the last round vouches for the one before";
  for (std::size_t i = 4; i < machine.order.size(); ++i)
    EXPECT_EQ(machine.order[i], i % 2 == 0 ? "a" : "b");
  EXPECT_NEAR(m.times[0].median.value(), 1e-3, 1e-9);
  EXPECT_NEAR(m.times[1].median.value(), 2e-3, 1e-9);
  EXPECT_NEAR(m.times[1].rate.value(), 2000 / 2e-3, 1e-3);
  EXPECT_NEAR(m.times[1].bandwidth.value(), 1000 / 2e-3, 1e-3);
}

// BR-52: thermal throttling, unnoticed.
TEST(Measuring, Br52_RoundsWhoseClockMovedAreDropped) {
  FakeMachine machine;
  machine.before_sample = [&machine](int sample) {
    // Rounds of two samples after four of the warm-up: the third to the fifth run at a fifth.
    machine.clock = sample >= 8 && sample < 14 ? 2e8 : 1e9;
  };
  const std::vector<Contender> all = {machine.contender("a", 1e-3), machine.contender("b", 2e-3)};
  const Measurement m = measure(all, options(), machine, {}).value();
  EXPECT_EQ(m.dropped, 2) << "the round in which it fell and the one in which it rose";
  EXPECT_NEAR(m.times[0].median / m.times[1].median, 0.5, 1e-9);
  EXPECT_EQ(m.before.temperature, 40);
  EXPECT_EQ(m.after.clock, 1e9);
}

TEST(Measuring, Br52_AMachineThatNeverRestsGivesNoTimes) {
  FakeMachine machine;
  machine.before_sample = [&machine](int) { machine.clock *= 0.9; };
  const std::vector<Contender> all = {machine.contender("a", 1e-3), machine.contender("b", 2e-3)};
  const auto m = measure(all, options(), machine, {});
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code(), ErrorCode::kDevice);
  EXPECT_THAT(m.error().message(), HasSubstr("moved by more than 5 %"));
}

TEST(Measuring, Br52_FourPercentAreNoReasonToDrop) {
  FakeMachine machine;
  machine.before_sample = [&machine](int sample) { machine.clock = sample % 4 < 2 ? 1e9 : 1.04e9; };
  const std::vector<Contender> all = {machine.contender("a", 1e-3), machine.contender("b", 2e-3)};
  EXPECT_EQ(measure(all, options(), machine, {}).value().dropped, 0);
}

// BR-54 again: what took a processor away is known, and the round is no round.
TEST(Measuring, Br54_RoundsThatWaitedForAProcessorAreDropped) {
  FakeMachine machine;
  machine.before_sample = [&machine](int sample) {
    const bool is_busy = sample >= 6 && sample < 8;  // the second round
    machine.load = is_busy ? 3 : 1;
    if (is_busy) machine.wait += 1e-3;
  };
  const std::vector<Contender> all = {machine.contender("a", 1e-3), machine.contender("b", 2e-3)};
  const Measurement m = measure(all, options(), machine, {}).value();
  EXPECT_EQ(m.dropped, 2) << "and the round before, whose wait may be the one that shows";
  EXPECT_EQ(m.rounds, 5);
}

// BR-53: the first step holds most of a run.
TEST(Measuring, Br53_TheFirstRunIsReportedApart) {
  FakeMachine machine;
  const std::vector<Contender> all = {machine.contender("a", 1e-3, 1),
                                      machine.contender("b", 2e-3)};
  const Measurement m = measure(all, options(), machine, {}).value();
  EXPECT_NEAR(m.first_runs[0].value(), 0.5, 1e-9);
  EXPECT_NEAR(m.times[0].median.value(), 1e-3, 1e-9);
}

// BR-54: load moves numbers two to three times.
TEST(Measuring, Br54_OnlyRatiosWithinARoundDecide) {
  FakeMachine machine;
  std::mt19937 random(5);
  machine.before_sample = [&](int sample) {
    if (sample >= 4 && sample % 2 == 0)
      machine.load = std::uniform_real_distribution<double>(1, 3)(random);
  };
  MeasureOptions o = options();
  o.least_rounds = 15;
  const std::vector<Contender> all = {machine.contender("a", 1.05e-3),
                                      machine.contender("b", 1e-3)};
  const Measurement m = measure(all, o, machine, {}).value();
  EXPECT_NEAR(m.times[0].median / m.times[1].median, 1.05, 1e-9);
  EXPECT_LT(m.times[0].spread, 1e-6 * m.times[0].median);
}

TEST(Measuring, Br54_ASingleDisturbedSampleDoesNotDecide) {
  FakeMachine machine;
  machine.before_sample = [&machine](int sample) { machine.load = sample == 7 ? 3 : 1; };
  const std::vector<Contender> all = {machine.contender("a", 1.05e-3),
                                      machine.contender("b", 1e-3)};
  const Measurement m = measure(all, options(), machine, {}).value();
  EXPECT_NEAR(m.times[0].median / m.times[1].median, 1.05, 1e-9);
}

// BR-56: a graph too short measures the submission.
TEST(Measuring, Br56_ManyOpsAreChained) {
  FakeMachine machine;
  machine.submission = 5e-4;
  MeasureOptions o = options();
  o.sample = Seconds(1);
  const std::vector<Contender> all = {machine.contender("a", 2e-6), machine.contender("b", 4e-6)};
  const Measurement m = measure(all, o, machine, {}).value();
  EXPECT_GE(*std::max_element(machine.chains.begin(), machine.chains.end()), 1000);
  // Alone either would show 502 and 504 us: one and the same.
  EXPECT_LT(m.times[0].median / m.times[1].median, 0.55);
}

TEST(Measuring, AHopelessContenderRunsOnce) {
  FakeMachine machine;
  const std::vector<Contender> all = {machine.contender("slow", 1),
                                      machine.contender("fast", 1e-3)};
  const Measurement m = measure(all, options(), machine, {}).value();
  EXPECT_EQ(m.times[0].samples, 1);
  EXPECT_EQ(m.times[1].samples, 5);
  EXPECT_NEAR(m.times[0].median.value(), 1, 1e-9);
}

TEST(Measuring, CancellingEndsIt) {
  FakeMachine machine;
  const CancelToken cancel = CancelToken::make();
  machine.before_sample = [&cancel](int sample) {
    if (sample == 6) cancel.request();
  };
  const std::vector<Contender> all = {machine.contender("a", 1e-3), machine.contender("b", 2e-3)};
  const auto m = measure(all, options(), machine, cancel);
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code(), ErrorCode::kCancelled);
}

TEST(Measuring, AFailingRunIsTheError) {
  FakeMachine machine;
  Contender broken = machine.contender("a", 1e-3);
  broken.run = [](int) -> Result<Seconds> { return Error(ErrorCode::kDevice, "it is gone"); };
  EXPECT_EQ(measure(std::vector<Contender>{broken}, options(), machine, {}).error().message(),
            "it is gone");
}

// The gate on made-up numbers: 20 shapes of which each of two variants wins at least five by over
// 10 %, a prior that is wrong about most of them, and a noisy machine. After calibration the chosen
// one is within 5 % of the better one everywhere.
TEST(Gate, TwentyShapesAreChosenWithinFivePercentOfTheBetterVariant) {
  struct Shape {
    std::int64_t m, n;
    double own, vendor;  // seconds
  };
  std::vector<Shape> shapes;
  for (int i = 0; i < 20; ++i) {
    const double ratio = i < 8    ? 0.5 + 0.05 * i
                         : i < 16 ? 1.15 + 0.1 * (i - 8)
                                  : 0.98 + 0.01 * (i - 16);
    shapes.push_back({std::int64_t{1} << (i % 10), 256 + 64 * i, 1e-3 * ratio, 1e-3});
  }
  FakeMachine machine;
  std::mt19937 random(17);
  std::normal_distribution<double> noise(0, 0.01);
  machine.before_sample = [&](int) { machine.load = std::exp(noise(random)); };
  MeasuredTable table;
  const auto problem_of = [](const Shape& s) {
    return Problem{.op = "product", .dtypes = "f32", .layout = "rows", .n = s.n, .k = 64, .m = s.m};
  };
  for (const Shape& s : shapes) {
    const std::vector<Contender> all = {machine.contender("own", s.own),
                                        machine.contender("vendor", s.vendor)};
    const Measurement m = measure(all, options(), machine, {}).value();
    TableRow row;
    row.problem = problem_of(s);
    row.times = m.times;
    table.put(row);
  }
  int own_wins = 0;
  int vendor_wins = 0;
  for (const Shape& s : shapes) {
    own_wins += s.own * 1.1 < s.vendor ? 1 : 0;
    vendor_wins += s.vendor * 1.1 < s.own ? 1 : 0;
    std::vector<Candidate> candidates = {{"own", "", {}}, {"vendor", "", {}}};
    candidates[0].work.launches = 100;  // the prior always prefers the vendor
    std::vector<std::string> warnings;
    const Choice c = choose(problem_of(s), candidates, {{}, &table, {}}, warnings).value();
    EXPECT_EQ(c.basis, Basis::kMeasured);
    const double chosen = c.index == 0 ? s.own : s.vendor;
    EXPECT_LE(chosen, 1.05 * std::min(s.own, s.vendor)) << s.m << " " << s.n;
  }
  EXPECT_GE(own_wins, 5);
  EXPECT_GE(vendor_wins, 5);
}

}  // namespace
}  // namespace tern::backend
