// GPT-2's rule.
#include "text/split_rules.h"
#include "text/split_scan.h"

namespace tern::text {

std::size_t split_gpt2(std::string_view text, std::size_t begin, const CancelToken& cancel) {
  if (const std::size_t end = detail::contraction_end(text, begin, false)) return end;
  // " ?" before each of the three runs
  std::size_t start = begin;
  if (text[begin] == ' ' && begin + 1 < text.size()) start = begin + 1;
  const CharClass kind = char_at(text, start).kind;
  switch (kind) {
    case CharClass::kLetter:
    case CharClass::kNumber:
      return detail::run_end(cancel, text, start, [kind](const Char& c) { return c.kind == kind; });
    case CharClass::kSpace:
      return detail::split_spaces(text, begin, detail::scan_spaces(cancel, text, begin));
    default:
      return detail::run_end(cancel, text, start, [](const Char& c) {
        return c.kind != CharClass::kLetter && c.kind != CharClass::kNumber &&
               c.kind != CharClass::kSpace;
      });
  }
}

}  // namespace tern::text
