// Any bytes as a chat template, with the variables behind the first NUL: never a crash, a hang or a
// leak.
#include <cstdint>
#include <string_view>

#include "tests/fuzz/fuzz.h"
#include "text/chat_template/characters.h"
#include "text/chat_template/chat_template.h"
#include "text/chat_template/evaluator.h"
#include "text/chat_template/parser.h"
#include "text/chat_template/resolver.h"

namespace {

using namespace tern::text::jinja;

constexpr std::uint64_t kSteps = 100'000;  // a hundredth of what a request has
constexpr std::string_view kVariables =
    R"({"messages": [{"role": "user", "content": "a <b>\n é世"}, {"role": "assistant",
    "content": [{"type": "text", "text": "x"}], "tool_calls": [{"function": {"name": "f",
    "arguments": {"a": 1.5, "b": null}}}]}], "tools": [{"type": "function"}], "n": 3, "t": true})";

void render(std::string_view source, const Value& variables) {
  Budget budget(kSteps);
  try {
    Template tree = parse_template(source);
    resolve_names(tree);
    TextBuilder out(&budget, kMaxOutputBytes);
    Evaluator evaluator(tree, budget, tern::text::Clock{2026, 1, 2, 3, 4, 5});
    evaluator.render(variables.dict().dict, out);
    fuzz_require(!find_invalid_utf8(out.text()), "the rendered text is valid");
    fuzz_require(out.size() == (out.runs().empty() ? 0 : out.runs().back().end),
                 "every byte has an origin");
  } catch (const TemplateFault& fault) {
    fuzz_require(fault.kind() == FaultKind::kRaised || !fault.message().empty(),
                 "a fault has words");
  }
  fuzz_require(budget.live() == 0, "nothing outlives its rendering");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\0');
  const auto given =
      value_from_json(cut == std::string_view::npos ? kVariables : input.substr(cut + 1));
  const bool usable = given.ok() && given->is_dict();
  const Value variables = usable ? *given : value_from_json(kVariables).value();
  const std::string_view source = input.substr(0, cut);
  if (source.size() > kMaxSourceBytes || find_invalid_utf8(source)) return 0;
  render(normalize_source(source), variables);
  return 0;
}
