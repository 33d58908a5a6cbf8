// How variants are measured against each other: interleaved rounds of many ops each, rounds
// dropped while the machine's clock moves, and medians of ratios within a round.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/choice/measured_table.h"
#include "backend/choice/units.h"
#include "base/cancellation.h"
#include "base/error.h"

namespace tern::backend {

// What tells whether the machine is the one it was a moment ago.
class MachineProbe {
 public:
  virtual ~MachineProbe() = default;
  [[nodiscard]] virtual MachineState state() = 0;
  // How long the threads of this process have waited for a processor that ran something else; only
  // differences count. 0 where nobody can tell.
  [[nodiscard]] virtual Seconds waited() { return Seconds(); }
};

// A variant with a problem's buffers behind it: random data, weights rotated past the last cache.
struct Contender {
  std::string variant;
  Seconds predicted{};
  Bytes bytes{};
  Flop flop{};
  // Runs the op `chain` times in one submission and says how long that took on the device.
  std::function<Result<Seconds>(int chain)> run;
};

struct MeasureOptions {
  int least_rounds = 5;  // below this nothing is reported
  int most_rounds = 75;  // as many as fit into `budget`
  Seconds budget{1.0};   // of all rounds together
  Seconds sample{2e-3};  // one sample: as many ops as take this long
  int most_chain = 4096;
  double clock_tolerance = 0.05;  // a round in which the clock moved by more is dropped
  double load_tolerance =
      0.05;  // as is one whose threads waited for more of it, and the one before
  // A contender that its first run shows this many times slower than the best one takes no part in
  // the rounds: that run is its only sample.
  double hopeless = 8;
};

struct Measurement {
  std::vector<VariantTime> times;   // by contender
  std::vector<Seconds> first_runs;  // apart from all others: they pay for pages and caches
  int rounds = 0;
  int dropped = 0;
  MachineState before, after;
};

// Errors: what a run fails with; kCancelled; kDevice when fewer than least_rounds rounds were
// steady.
[[nodiscard]] Result<Measurement> measure(std::span<const Contender> contenders,
                                          const MeasureOptions& options, MachineProbe& probe,
                                          const CancelToken& cancel);

}  // namespace tern::backend
