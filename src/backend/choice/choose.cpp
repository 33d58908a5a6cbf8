#include "backend/choice/choose.h"

namespace tern::backend {
namespace {

std::string names_of(std::span<const Candidate> candidates) {
  std::string names;
  for (const Candidate& c : candidates) {
    if (!names.empty()) names += ", ";
    names += c.name;
  }
  return names;
}

std::string missing_text(const Candidate& c) {
  return fmt::format("{} needs {}", c.name, c.missing);
}

}  // namespace

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

Result<Choice> choose(std::string_view op, std::span<const Candidate> candidates,
                      std::span<const Pin> pins, std::vector<std::string>& warnings) {
  std::string refused;
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].missing.empty()) {
      if (!first) first = i;
    } else {
      refused += (refused.empty() ? "" : ", ") + missing_text(candidates[i]);
    }
  }
  if (!first)
    return fail(ErrorCode::kUnsupported, "[choice] {}: no variant runs here ({})", op, refused);
  Choice choice{*first, fmt::format("first of {} in the prior order", candidates.size())};
  if (candidates.size() == 1) choice.reason = "the only variant";
  if (!refused.empty()) choice.reason += "; " + refused;
  for (const Pin& pin : pins) {
    if (pin.op != op) continue;
    std::optional<std::size_t> pinned;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].name == pin.variant) pinned = i;
    if (!pinned)
      return fail(ErrorCode::kUsage, "--pin {}:{}: {} has the variants {}", pin.op, pin.variant, op,
                  names_of(candidates));
    if (candidates[*pinned].missing.empty()) {
      choice = {*pinned, "pinned"};
    } else {
      warnings.push_back(fmt::format("--pin {}:{} cannot be followed: {}; {} runs instead", pin.op,
                                     pin.variant, missing_text(candidates[*pinned]),
                                     candidates[choice.index].name));
    }
  }
  return choice;
}

}  // namespace tern::backend
