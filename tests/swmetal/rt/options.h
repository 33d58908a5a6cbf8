// How the executor runs: order, number of OS threads, strictness. Set by SWM_* variables or by the
// test (include/swmetal/swmetal.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace swm {

enum class Order : std::uint8_t { kForward, kReverse, kRandom };

struct Options {
  Order order = Order::kForward;  // of lanes, SIMD-groups, threadgroups, concurrent dispatches
  std::uint64_t seed = 1;         // of kRandom
  unsigned workers = 0;           // OS threads; 0: as many as cores, and one for small grids
  bool poison = true;             // threadgroup memory is filled with ff before each threadgroup
  bool strict = true;             // divergent collectives and barriers fail
};

// The one place where the emulator looks at the environment.
[[nodiscard]] std::optional<std::string> environment(const char* name);
// SWM_ORDER (fwd, rev, rand), SWM_SEED, SWM_WORKERS, SWM_LAX. An unknown order aborts: a run that
// was not in the order that was asked for must not pass.
[[nodiscard]] Options options_from_environment();

}  // namespace swm
