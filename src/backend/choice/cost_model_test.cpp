// The prior: its formula term by term, and units that cannot be mixed.
#include "backend/choice/cost_model.h"

#include <gtest/gtest.h>

namespace tern::backend {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A>
concept FromDouble = requires {
  [](A) {}(1.0);
};

// W23: GFLOP/s and FLOP/s, ns and s cannot meet.
static_assert(Addable<Seconds, Seconds> && !Addable<Seconds, Bytes> && !Addable<Flop, Bytes>);
static_assert(!Comparable<FlopPerSecond, BytesPerSecond> && !Comparable<Seconds, double>);
static_assert(!FromDouble<Seconds> && !FromDouble<FlopPerSecond>);

DeviceRates rates() {
  DeviceRates r;
  r.launch = Seconds(1);
  r.peak.fill(FlopPerSecond(100));
  r.bandwidth = BytesPerSecond(10);
  r.cores = 4;
  return r;
}

Work whole() {
  Work w;
  w.launches = 0;
  w.rows = 8;
  w.outputs = 8;
  w.tile_rows = 4;
  w.tile_outputs = 4;  // four tiles for four cores
  return w;
}

TEST(CostModel, LaunchesAreCounted) {
  Work w = whole();
  w.launches = 3;
  EXPECT_DOUBLE_EQ(predict(w, rates()).total.value(), 3);
}

TEST(CostModel, TheSlowerOfArithmeticAndMemoryCounts) {
  Work w = whole();
  w.flop = Flop(500);
  w.bytes = Bytes(40);
  EXPECT_DOUBLE_EQ(predict(w, rates()).total.value(), 5);
  w.bytes = Bytes(70);
  EXPECT_DOUBLE_EQ(predict(w, rates()).total.value(), 7);
}

TEST(CostModel, ConversionsAndEpilogueAreAdded) {
  Work w = whole();
  w.flop = Flop(500);
  w.conversion_bytes = Bytes(10);
  w.epilogue_bytes = Bytes(20);
  EXPECT_DOUBLE_EQ(predict(w, rates()).total.value(), 5 + 1 + 2);
}

TEST(CostModel, HalfEmptyTilesAndIdleCoresAreSlower) {
  Work w = whole();
  w.flop = Flop(400);
  w.rows = 5;  // of 8 in tiles
  const Prediction ragged = predict(w, rates());
  EXPECT_DOUBLE_EQ(ragged.tile_efficiency, 5.0 / 8);
  EXPECT_DOUBLE_EQ(ragged.total.value(), 4 / (5.0 / 8));
  w = whole();
  w.flop = Flop(400);
  w.outputs = 4;  // two tiles for four cores
  EXPECT_DOUBLE_EQ(predict(w, rates()).wave_efficiency, 0.5);
  EXPECT_DOUBLE_EQ(predict(w, rates()).total.value(), 8);
  w = whole();
  w.outputs = 12;  // six tiles: two waves of four
  EXPECT_DOUBLE_EQ(predict(w, rates()).wave_efficiency, 6.0 / 8);
}

TEST(CostModel, EachArithmeticHasItsOwnPeak) {
  DeviceRates r = rates();
  r.peak[static_cast<std::size_t>(Arithmetic::kInteger)] = FlopPerSecond(200);
  Work w = whole();
  w.flop = Flop(400);
  EXPECT_DOUBLE_EQ(predict(w, r).total.value(), 4);
  w.arithmetic = Arithmetic::kInteger;
  EXPECT_DOUBLE_EQ(predict(w, r).total.value(), 2);
}

TEST(CostModel, TimesAreWrittenInTheUnitThatFits) {
  EXPECT_EQ(to_string(Seconds(4.12e-7)), "412 ns");
  EXPECT_EQ(to_string(Seconds(4.12e-5)), "41.2 us");
  EXPECT_EQ(to_string(Seconds(4.12e-4)), "412 us");
  EXPECT_EQ(to_string(Seconds(4.12e-3)), "4.12 ms");
  EXPECT_EQ(to_string(Seconds(4.12)), "4.12 s");
}

}  // namespace
}  // namespace tern::backend
