// Rules that cut runs of one class of characters out of a text; they come before or after others.
#include "text/split_rules.h"
#include "text/split_scan.h"
#include "text/stop_request.h"

namespace tern::text {
namespace {

bool is_number(const Char& c) { return c.kind == CharClass::kNumber; }
bool is_digit(const Char& c) { return c.code >= '0' && c.code <= '9'; }

bool is_punctuation(const Char& c) {
  if (c.kind == CharClass::kPunctuation) return true;
  switch (c.code) {
    case '$':
    case '+':
    case '<':
    case '=':
    case '>':
    case '^':
    case '~':
    case '|':
      return true;
    default:
      return false;
  }
}

// Runs that `wanted` accepts, and what lies between them.
template <class Predicate>
std::size_t split_runs(std::string_view text, std::size_t begin, Predicate wanted,
                       const CancelToken& cancel) {
  const bool inside = wanted(char_at(text, begin));
  return detail::run_end(cancel, text, begin, [&](const Char& c) { return wanted(c) == inside; });
}

bool is_triple_at(std::string_view text, std::size_t at) {
  return text.size() - at >= 3 && is_digit(char_at(text, at)) && is_digit(char_at(text, at + 1)) &&
         is_digit(char_at(text, at + 2));
}

}  // namespace

std::size_t split_each_number(std::string_view text, std::size_t begin, const CancelToken& cancel) {
  const Char first = char_at(text, begin);
  if (is_number(first)) return begin + first.length;
  return split_runs(text, begin, is_number, cancel);
}

std::size_t split_number_runs(std::string_view text, std::size_t begin, const CancelToken& cancel) {
  return split_runs(text, begin, is_number, cancel);
}

std::size_t split_digit_triples(std::string_view text, std::size_t begin,
                                const CancelToken& cancel) {
  if (is_triple_at(text, begin)) return begin + 3;
  std::size_t end = begin;
  while (end < text.size() && !is_triple_at(text, end)) {
    stop_if_requested(cancel);
    end += char_at(text, end).length;
  }
  return end;
}

std::size_t split_punctuation(std::string_view text, std::size_t begin, const CancelToken& cancel) {
  return split_runs(text, begin, is_punctuation, cancel);
}

}  // namespace tern::text
