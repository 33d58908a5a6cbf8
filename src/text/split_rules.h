// The splitting rules, one function each: hand-written, because the regular expressions they stand
// for must be exact, must not backtrack, and must take any bytes.
//
// A rule returns where the piece that starts at `begin` < text.size() ends (> begin). What an
// expression does not match is a piece too. Every rule reads each character a bounded number of
// times, so that splitting a text is linear. A piece may be long: inside of one, the rule throws
// Error(kCancelled) soon after the token is tripped.
#pragma once

#include <cstddef>
#include <string_view>

#include "tern/cancel.h"

namespace tern::text {

using SplitRule = std::size_t (*)(std::string_view text, std::size_t begin,
                                  const CancelToken& cancel);

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
[[nodiscard]] std::size_t split_gpt2(std::string_view text, std::size_t begin,
                                     const CancelToken& cancel);

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
//   |\s*[\r\n]+|\s+(?!\S)|\s+
[[nodiscard]] std::size_t split_llama3(std::string_view text, std::size_t begin,
                                       const CancelToken& cancel);

// The same with \p{N} for \p{N}{1,3}.
[[nodiscard]] std::size_t split_qwen2(std::string_view text, std::size_t begin,
                                      const CancelToken& cancel);

// split_qwen2 with [\p{L}\p{M}]+ for \p{L}+ and [^\s\p{L}\p{M}\p{N}] in the fourth alternative.
[[nodiscard]] std::size_t split_qwen35(std::string_view text, std::size_t begin,
                                       const CancelToken& cancel);

// \p{N}
[[nodiscard]] std::size_t split_each_number(std::string_view text, std::size_t begin,
                                            const CancelToken& cancel);

// \p{N}+
[[nodiscard]] std::size_t split_number_runs(std::string_view text, std::size_t begin,
                                            const CancelToken& cancel);

// [0-9][0-9][0-9]
[[nodiscard]] std::size_t split_digit_triples(std::string_view text, std::size_t begin,
                                              const CancelToken& cancel);

// [\p{P}\$\+<=>\^~\|]+
[[nodiscard]] std::size_t split_punctuation(std::string_view text, std::size_t begin,
                                            const CancelToken& cancel);

}  // namespace tern::text
