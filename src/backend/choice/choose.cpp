#include "backend/choice/choose.h"

#include <algorithm>

namespace tern::backend {
namespace {

std::string join(std::span<const std::string_view> names) {
  std::string text;
  for (std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

std::string refusals_of(std::span<const Candidate> candidates) {
  std::string text;
  for (const Candidate& c : candidates) {
    if (c.refusal.empty()) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", c.name, c.refusal);
  }
  return text;
}

Score score_of(const Problem& problem, const Candidate& c, const ChoiceContext& context,
               const TableRow* row) {
  Score score;
  score.is_eligible = c.refusal.empty();
  if (const VariantTime* time = row ? row->find(c.name) : nullptr) {
    score.time = time->median;
    score.basis = Basis::kMeasured;
    return score;
  }
  score.time = predict(c.work, context.rates).total;
  const std::optional<double> ratio =
      context.table ? context.table->neighbour_ratio(problem, c.name) : std::nullopt;
  if (ratio) {
    score.time = score.time * *ratio;
    score.basis = Basis::kInterpolated;
  }
  return score;
}

// The fastest eligible one; the first of several that are equal.
std::optional<std::size_t> fastest(std::span<const Score> scores,
                                   std::optional<std::size_t> but = std::nullopt) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!scores[i].is_eligible || i == but) continue;
    if (!best || scores[i].time < scores[*best].time) best = i;
  }
  return best;
}

// What was measured a little faster does not replace what runs: the row's incumbent stays until it
// is beaten clearly.
std::size_t with_hysteresis(std::size_t best, std::span<const Candidate> candidates,
                            std::span<const Score> scores, const TableRow* row) {
  if (!row || scores[best].basis != Basis::kMeasured) return best;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].name != row->incumbent || !scores[i].is_eligible) continue;
    const VariantTime* incumbent = row->find(row->incumbent);
    if (incumbent && !beats(*row->find(candidates[best].name), *incumbent)) return i;
  }
  return best;
}

std::string lead_text(double margin, std::string_view runner_up, Basis basis) {
  if (margin >= 0.995)
    return fmt::format("{:.1f} times faster than {} ({})", margin + 1, runner_up, to_string(basis));
  if (margin < 0)
    return fmt::format("{:.1f} % behind {} ({}), too little to change", -margin * 100, runner_up,
                       to_string(basis));
  return fmt::format("{:.0f} % ahead of {} ({})", margin * 100, runner_up, to_string(basis));
}

void explain(Choice& choice, std::span<const Candidate> candidates) {
  const std::optional<std::size_t> second = fastest(choice.scores, choice.index);
  if (second) choice.margin = choice.scores[*second].time / choice.expected - 1;
  if (choice.basis == Basis::kPinned) {
    choice.reason = "pinned";
  } else if (!second) {
    choice.basis = Basis::kOnly;
    choice.reason = candidates.size() == 1 ? "the only variant" : "the only variant that runs here";
  } else {
    choice.lead = lead_text(*choice.margin, candidates[*second].name, choice.scores[*second].basis);
    choice.reason =
        fmt::format("{} {}, {}", to_string(choice.basis), to_string(choice.expected), choice.lead);
  }
  if (choice.basis == Basis::kPinned) return;
  const std::string refusals = refusals_of(candidates);
  if (!refusals.empty()) choice.reason += "; " + refusals;
}

}  // namespace

std::string_view to_string(Basis basis) {
  switch (basis) {
    case Basis::kOnly:
      return "the only variant";
    case Basis::kPinned:
      return "pinned";
    case Basis::kMeasured:
      return "measured";
    case Basis::kInterpolated:
      return "interpolated";
    case Basis::kPredicted:
      break;
  }
  return "predicted";
}

Result<std::vector<Pin>> parse_pins(std::span<const std::string> texts) {
  std::vector<Pin> pins;
  for (const std::string& text : texts) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
      return fail(ErrorCode::kUsage, "--pin {}: expected OP:VARIANT, as 'tern explain' names them",
                  text);
    pins.push_back({text.substr(0, colon), text.substr(colon + 1)});
  }
  return pins;
}

Result<void> check_pins(std::span<const Pin> pins, std::span<const Pinnable> known) {
  for (const Pin& pin : pins) {
    const auto op = std::find_if(known.begin(), known.end(),
                                 [&pin](const Pinnable& each) { return each.op == pin.op; });
    if (op == known.end()) {
      std::vector<std::string_view> names;
      for (const Pinnable& each : known) names.push_back(each.op);
      return fail(ErrorCode::kUsage, "--pin {}:{}: there is no op '{}'; pinnable are {}", pin.op,
                  pin.variant, pin.op, join(names));
    }
    if (std::find(op->variants.begin(), op->variants.end(), pin.variant) == op->variants.end())
      return fail(ErrorCode::kUsage, "--pin {}:{}: {} has the variants {}", pin.op, pin.variant,
                  op->op, join(op->variants));
  }
  return {};
}

Result<Choice> choose(const Problem& problem, std::span<const Candidate> candidates,
                      const ChoiceContext& context, std::vector<std::string>& warnings) {
  const TableRow* row = context.table ? context.table->find(problem) : nullptr;
  Choice choice;
  for (const Candidate& c : candidates) choice.scores.push_back(score_of(problem, c, context, row));
  const std::optional<std::size_t> best = fastest(choice.scores);
  if (!best)
    return fail(ErrorCode::kUnsupported, "[choice] {}: no variant runs here ({})",
                describe(problem), refusals_of(candidates));
  choice.index = with_hysteresis(*best, candidates, choice.scores, row);
  choice.basis = choice.scores[choice.index].basis;
  std::vector<std::string> refused_pins;
  for (const Pin& pin : context.pins) {
    if (pin.op != problem.op) continue;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].name != pin.variant) continue;
      if (candidates[i].refusal.empty()) {
        choice.index = i;
        choice.basis = Basis::kPinned;
      } else {
        refused_pins.push_back(fmt::format("--pin {}:{} cannot be followed: {} {}", pin.op,
                                           pin.variant, candidates[i].name, candidates[i].refusal));
      }
    }
  }
  choice.expected = choice.scores[choice.index].time;
  for (const std::string& refused : refused_pins) {
    std::string text = fmt::format("{}; {} runs instead", refused, candidates[choice.index].name);
    if (std::find(warnings.begin(), warnings.end(), text) == warnings.end())
      warnings.push_back(std::move(text));
  }
  explain(choice, candidates);
  return choice;
}

Result<Choice> choose(std::string_view op, std::span<const Candidate> candidates,
                      std::span<const Pin> pins, std::vector<std::string>& warnings) {
  Problem problem;
  problem.op = op;
  std::vector<Candidate> alike(candidates.begin(), candidates.end());
  for (Candidate& c : alike) c.work = Work();
  TERN_ASSIGN(Choice choice, choose(problem, alike, ChoiceContext{{}, nullptr, pins}, warnings));
  if (choice.basis != Basis::kPredicted) return choice;
  choice.reason = fmt::format("first of {} in the prior order", candidates.size());
  const std::string refusals = refusals_of(candidates);
  if (!refusals.empty()) choice.reason += "; " + refusals;
  return choice;
}

}  // namespace tern::backend
