// The family of rules that began with Llama 3: they differ in how many digits stand together and in
// whether a combining mark counts as a letter.
#include "text/split_rules.h"
#include "text/split_scan.h"

namespace tern::text {
namespace {

struct Family {
  int digits;               // \p{N}{1,digits}
  bool marks_join_letters;  // [\p{L}\p{M}] for \p{L}
};

template <Family family>
bool is_letter(const Char& c) {
  return c.kind == CharClass::kLetter || (family.marks_join_letters && c.kind == CharClass::kMark);
}

bool is_newline(const Char& c) { return c.code == '\r' || c.code == '\n'; }

template <Family family>
bool is_symbol(const Char& c) {
  return c.kind != CharClass::kSpace && c.kind != CharClass::kNumber && !is_letter<family>(c);
}

template <Family family>
std::size_t split(std::string_view text, std::size_t begin, const CancelToken& cancel) {
  if (const std::size_t end = detail::contraction_end(text, begin, true)) return end;
  const Char c = char_at(text, begin);
  const std::size_t second = begin + c.length;
  // [^\r\n\p{L}\p{N}]?\p{L}+
  if (is_letter<family>(c)) return detail::run_end(cancel, text, second, is_letter<family>);
  if (c.kind == CharClass::kNumber) {
    std::size_t end = second;
    for (int n = 1; n < family.digits && detail::is_kind_at(text, end, CharClass::kNumber); ++n) {
      end += char_at(text, end).length;
    }
    return end;
  }
  if (!is_newline(c) && second < text.size() && is_letter<family>(char_at(text, second))) {
    return detail::run_end(cancel, text, second, is_letter<family>);
  }
  //  ?[^\s\p{L}\p{N}]+[\r\n]*
  const std::size_t start = c.code == ' ' ? second : begin;
  if (start < text.size() && is_symbol<family>(char_at(text, start))) {
    return detail::run_end(cancel, text, detail::run_end(cancel, text, start, is_symbol<family>),
                           is_newline);
  }
  // \s*[\r\n]+ reaches to the last line break of the white space
  const detail::SpaceRun run = detail::scan_spaces(cancel, text, begin);
  return run.newlines_end != 0 ? run.newlines_end : detail::split_spaces(text, begin, run);
}

}  // namespace

std::size_t split_llama3(std::string_view text, std::size_t begin, const CancelToken& cancel) {
  return split<Family{.digits = 3, .marks_join_letters = false}>(text, begin, cancel);
}

std::size_t split_qwen2(std::string_view text, std::size_t begin, const CancelToken& cancel) {
  return split<Family{.digits = 1, .marks_join_letters = false}>(text, begin, cancel);
}

std::size_t split_qwen35(std::string_view text, std::size_t begin, const CancelToken& cancel) {
  return split<Family{.digits = 1, .marks_join_letters = true}>(text, begin, cancel);
}

}  // namespace tern::text
