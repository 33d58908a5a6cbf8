// Steps that the splitting rules share: runs of characters, runs of white space, contractions.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/stop_request.h"
#include "text/unicode.h"

namespace tern::text::detail {

// The end of the run of characters that `wanted` accepts, from `at` on.
template <class Predicate>
std::size_t run_end(const CancelToken& cancel, std::string_view text, std::size_t at,
                    Predicate wanted) {
  while (at < text.size()) {
    stop_if_requested(cancel);
    const Char c = char_at(text, at);
    if (!wanted(c)) break;
    at += c.length;
  }
  return at;
}

// The character at `at`, or one of no kind that ends every run where the text is over.
[[nodiscard]] inline bool is_kind_at(std::string_view text, std::size_t at, CharClass kind) {
  return at < text.size() && char_at(text, at).kind == kind;
}

// A run of white space that starts at `begin`.
struct SpaceRun {
  std::size_t end = 0;           // where it ends
  std::size_t last = 0;          // where its last character starts
  std::size_t newlines_end = 0;  // behind its last \r or \n; 0: it has none
};
[[nodiscard]] SpaceRun scan_spaces(const CancelToken& cancel, std::string_view text,
                                   std::size_t begin);

// \s+(?!\S)|\s+ on such a run: all of it at the end of the text; else all but the last character,
// which goes with what follows, unless it is alone.
[[nodiscard]] inline std::size_t split_spaces(std::string_view text, std::size_t begin,
                                              const SpaceRun& run) {
  return run.end == text.size() || run.last == begin ? run.end : run.last;
}

// The end of 's|'t|'re|'ve|'m|'ll|'d at `begin`, or 0. Ignoring case, 's also matches 'ſ (U+017F),
// which folds to s; no other letter here has such a twin.
[[nodiscard]] std::size_t contraction_end(std::string_view text, std::size_t begin,
                                          bool ignore_case);

}  // namespace tern::text::detail
