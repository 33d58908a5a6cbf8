// The executor: grids of every shape, partial SIMD-groups, barriers, and what strict mode refuses.
#include <numeric>

#include "runner.h"

namespace swmetal_test {
namespace {

using Executor = Runner;

TEST_F(Executor, EveryThreadOfEveryGridRunsOnceAndKnowsItsPlace) {
  const struct {
    swm_dim grid, group;
  } cases[] = {{{1, 1, 1}, {1, 1, 1}},       {{100, 1, 1}, {32, 1, 1}}, {{33, 1, 1}, {33, 1, 1}},
               {{1024, 1, 1}, {1024, 1, 1}}, {{7, 5, 1}, {4, 2, 1}},    {{10, 9, 3}, {4, 4, 2}},
               {{2, 3, 40}, {2, 2, 33}},     {{65, 1, 1}, {64, 1, 1}},  {{1, 70, 1}, {1, 31, 1}}};
  for (const unsigned workers : {1u, 2u})
    for (const auto& c : cases) {
      options.workers = workers;
      const size_t threads = size_t{c.grid.x} * c.grid.y * c.grid.z;
      std::vector<unsigned> out(16 * threads);
      bind(0, out);
      ASSERT_EQ(run("positions", c.grid, c.group), "");
      for (size_t i = 0; i < threads; i++) {
        ASSERT_EQ(out[16 * i], 1u) << "thread " << i << " of " << threads;
        ASSERT_EQ(out[16 * i + 1], 1u) << "thread " << i << " of " << threads;
      }
    }
}

TEST_F(Executor, BarriersHoldForEverySizeAndFibersAreReused) {
  for (const unsigned n : {1u, 2u, 31u, 32u, 33u, 64u, 127u, 1024u}) {
    const unsigned groups = n == 64 ? 2000 : 3;
    std::vector<unsigned> out(groups);
    bind(0, out);
    dispatch.args.group_bytes[0] = 4096;
    ASSERT_EQ(run("group_sum", {n * groups, 1, 1}, {n, 1, 1}), "");
    for (const unsigned sum : out) ASSERT_EQ(sum, n * (n + 1) / 2);
  }
  EXPECT_GT(counts.switches, counts.threads);
}

class Refusals : public Runner {
 protected:
  void SetUp() override {
    Runner::SetUp();
    out_.assign(1100, 0);
    bind(0, out_);
  }
  void expect(const std::string& kernel, unsigned threads, const std::string& words) {
    const std::string error = run(kernel, {threads, 1, 1}, {threads, 1, 1});
    EXPECT_NE(error.find(words), std::string::npos) << "'" << error << "' lacks '" << words << "'";
    EXPECT_NE(error.find("threads.metal: kernel " + kernel), std::string::npos) << error;
  }
  std::vector<unsigned> out_;
};

TEST_F(Refusals, SomeLanesAtACollectiveAndSomeAtABarrier) {
  expect("divergent_collective", 32, "lanes of one SIMD-group wait at different operations");
  expect("divergent_collective", 32, "line 51");
}
TEST_F(Refusals, LanesAtDifferentCollectives) {
  expect("two_collectives", 32, "lanes of one SIMD-group wait at different operations");
}
TEST_F(Refusals, DifferentBarriers) {
  expect("two_barriers", 64, "threads wait at different threadgroup barriers: line");
}
TEST_F(Refusals, ABarrierThatEndedThreadsDoNotReach) {
  expect("early_exit", 64, "is not reached by 24 threads that have ended");
}
TEST_F(Refusals, AShuffleFromAnInactiveLane) {
  expect("inactive_lane", 32, "SIMD shuffle from an inactive lane 20");
}
TEST_F(Refusals, AMatrixOperationWithInactiveLanes) {
  expect("partial_matrix", 20, "SIMD-group matrix operation with inactive lanes");
}
TEST_F(Refusals, TooManyThreads) {
  expect("early_exit", 1025, "1025");
  expect("at_most_64", 65, "65 threads per threadgroup; at most 64 are allowed");
}
TEST_F(Refusals, TooMuchThreadgroupMemory) {
  expect("group_memory_in_variables", 32, "threadgroup memory of 32784 bytes");
  dispatch.args.group_bytes[0] = 32784;
  expect("group_sum", 32, "threadgroup memory of 32784 bytes");
}
TEST_F(Refusals, MissingArguments) {
  dispatch.args.buffer[0] = nullptr;
  dispatch.args.group_bytes[0] = 64;
  expect("group_sum", 16, "nothing is bound to buffer 0");
  bind(0, out_);
  dispatch.args.group_bytes[0] = 0;
  expect("group_sum", 16, "threadgroup memory 0 has no length");
}
TEST_F(Refusals, FewerBytesThanAReferenceNeeds) {
  std::vector<unsigned char> small = {1, 0};
  bind(1, small);
  expect("deep_recursion_of_frames", 1, "fewer bytes are bound");
}
TEST_F(Refusals, LaxModeGivesActiveLanesInstead) {
  options.strict = false;
  ASSERT_EQ(run("divergent_collective", {32, 1, 1}, {32, 1, 1}), "");
  EXPECT_EQ(out_[0], 120u) << "the sum of lanes 0 to 15";
  EXPECT_EQ(out_[20], 20u);
  ASSERT_EQ(run("early_exit", {64, 1, 1}, {64, 1, 1}), "");
}
TEST_F(Refusals, AFailureStopsTheDispatchAndTheNextOneIsWell) {
  options.workers = 2;
  EXPECT_NE(run("early_exit", {6400, 1, 1}, {64, 1, 1}), "");
  dispatch.args.group_bytes[0] = 256;
  EXPECT_EQ(run("group_sum", {64, 1, 1}, {64, 1, 1}), "");
  EXPECT_EQ(out_[0], 64u * 65 / 2);
}

}  // namespace
}  // namespace swmetal_test
