// White space and contractions, as most rules treat them.
#include "text/split_scan.h"

namespace tern::text::detail {

SpaceRun scan_spaces(const CancelToken& cancel, std::string_view text, std::size_t begin) {
  SpaceRun run{begin, begin, 0};
  while (run.end < text.size()) {
    stop_if_requested(cancel);
    const Char c = char_at(text, run.end);
    if (c.kind != CharClass::kSpace) break;
    run.last = run.end;
    run.end += c.length;
    if (c.code == '\r' || c.code == '\n') run.newlines_end = run.end;
  }
  return run;
}

std::size_t contraction_end(std::string_view text, std::size_t begin, bool ignore_case) {
  if (text[begin] != '\'' || begin + 1 >= text.size()) return 0;
  const auto letter = [&](std::size_t at) {
    if (at >= text.size()) return '\0';
    const char c = text[at];
    return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(begin + 1);
  const char second = letter(begin + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return begin + 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
      (first == 'l' && second == 'l')) {
    return begin + 3;
  }
  constexpr std::string_view kLongS = "\xC5\xBF";
  if (ignore_case && text.substr(begin + 1, kLongS.size()) == kLongS) return begin + 3;
  return 0;
}

}  // namespace tern::text::detail
