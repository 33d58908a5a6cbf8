// Chooses one of several variants of a kernel: eligible, pinned, measured, predicted; with a
// reason.
//
// One loop over all candidates and no thresholds, so that no rule hides a faster variant.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/choice/cost_model.h"
#include "backend/choice/measured_table.h"
#include "backend/choice/problem.h"
#include "base/error.h"

namespace tern::backend {

// A variant as the choice sees it.
struct Candidate {
  std::string_view name;
  // Why it cannot run here, as a clause that follows its name ("needs AVX512F"); empty: eligible.
  // Whoever fills this in alone decides correctness; nothing overrides it.
  std::string refusal;
  Work work{};
};

// --pin OP:VARIANT, checked for form.
struct Pin {
  std::string op;
  std::string variant;
};
[[nodiscard]] Result<std::vector<Pin>> parse_pins(std::span<const std::string> texts);

// What can be pinned: every variant of an op's table.
struct Pinnable {
  std::string_view op;
  std::vector<std::string_view> variants;
};
// Errors: kUsage for an op or a variant that does not exist, naming those that do.
[[nodiscard]] Result<void> check_pins(std::span<const Pin> pins, std::span<const Pinnable> known);

enum class Basis : unsigned char {
  kOnly,  // no other variant is eligible
  kPinned,
  kMeasured,      // this bucket was measured
  kInterpolated,  // the prior, scaled by what neighbouring buckets showed
  kPredicted,     // the prior alone
};
[[nodiscard]] std::string_view to_string(Basis basis);  // "measured"

// How one candidate was ranked.
struct Score {
  Seconds time{};
  Basis basis = Basis::kPredicted;
  bool is_eligible = false;
};

struct Choice {
  std::size_t index = 0;
  Basis basis = Basis::kOnly;
  Seconds expected{};
  // The runner-up's time over this one's, less 1: 0.25 is 25 % ahead. None without a runner-up.
  std::optional<double> margin;
  std::string lead;           // "25 % ahead of avx2 (measured)"; empty: without a runner-up
  std::string reason;         // "measured 41.2 us, 25 % ahead of avx2 (measured); ..."
  std::vector<Score> scores;  // by candidate
};

struct ChoiceContext {
  DeviceRates rates;
  const MeasuredTable* table = nullptr;  // null: nothing was measured
  std::span<const Pin> pins;
};

// Errors: kUnsupported when nothing is eligible, naming the problem and every refusal. A pin on a
// variant that is not eligible adds a warning with the reason and the variant that runs instead.
[[nodiscard]] Result<Choice> choose(const Problem& problem, std::span<const Candidate> candidates,
                                    const ChoiceContext& context,
                                    std::vector<std::string>& warnings);

// The same for an op that has no shape to speak of and nothing measured: the first eligible one in
// the order of the table, unless another one is pinned.
[[nodiscard]] Result<Choice> choose(std::string_view op, std::span<const Candidate> candidates,
                                    std::span<const Pin> pins, std::vector<std::string>& warnings);

}  // namespace tern::backend
