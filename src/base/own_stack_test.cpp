#include "base/own_stack.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tern {
namespace {

// Each level takes at least a kilobyte of stack.
int depth_reached(int levels) {  // NOLINT(misc-no-recursion): recursion is what is tested
  volatile char frame[1024];
  frame[0] = static_cast<char>(levels);
  return levels == 0 ? 0 : 1 + depth_reached(levels - 1) + (frame[0] - static_cast<char>(levels));
}

TEST(OwnStack, HoldsWhatTheDefaultOneWouldNot) {
  int reached = 0;
  run_on_own_stack(std::size_t{64} << 20, [&] { reached = depth_reached(20'000); });
  EXPECT_EQ(reached, 20'000);
}

TEST(OwnStack, PassesExceptionsOn) {
  EXPECT_THROW(run_on_own_stack(1 << 20, [] { throw std::out_of_range("x"); }), std::out_of_range);
}

TEST(OwnStack, CanBeNested) {
  bool is_done = false;
  run_on_own_stack(1 << 20, [&] { run_on_own_stack(1 << 20, [&] { is_done = true; }); });
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace tern
