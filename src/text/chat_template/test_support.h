// Renders small programs for the tests of the template engine and keeps the kind of a fault.
#pragma once

#include <ctime>
#include <optional>
#include <string>

#include "text/chat_template/chat_template.h"
#include "text/chat_template/evaluator.h"
#include "text/chat_template/parser.h"
#include "text/chat_template/resolver.h"

namespace tern::text::jinja {

struct Outcome {
  std::string text;
  std::optional<FaultKind> fault;
  std::string message;
  int line = 0;
  std::size_t live_bytes = 0;       // held when all was over
  std::size_t most_live_bytes = 0;  // held at any time
  std::uint64_t steps = 0;
};

inline constexpr Clock kFixedClock{2026, 1, 2, 3, 4, 5};

inline Outcome run(std::string_view source, const Value& variables = make_dict({}),
                   std::uint64_t max_steps = kMaxSteps) {
  Outcome outcome;
  Budget budget(max_steps);
  int line = 0;
  try {
    Template tree = parse_template(normalize_source(source));
    resolve_names(tree);
    TextBuilder out(&budget, kMaxOutputBytes);
    Evaluator evaluator(tree, budget, kFixedClock);
    try {
      evaluator.render(variables.dict().dict, out);
    } catch (const TemplateFault&) {
      line = evaluator.line();
      throw;
    }
    outcome.text = out.take();
  } catch (const TemplateFault& fault) {
    outcome.fault = fault.kind();
    outcome.message = fault.message();
    outcome.line = fault.line() != 0 ? fault.line() : line;
  }
  outcome.live_bytes = budget.live();
  outcome.most_live_bytes = budget.most_live();
  outcome.steps = budget.steps();
  return outcome;
}

inline Outcome run_json(std::string_view source, std::string_view json) {
  return run(source, value_from_json(json).value());
}

// Seconds of processor time since `start` (std::clock()): other work on the machine does not count.
inline double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace tern::text::jinja
