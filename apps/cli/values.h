// Values of flags: text to numbers, lists, switches, and text with escapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tern::cli {

// Nothing when the whole text is not such a value.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);
// k, M and G (either case) are multiples of 1,024.
[[nodiscard]] std::optional<std::int64_t> parse_tokens(std::string_view text);
// Finite, or inf and -inf.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);
// on/off, true/false, 1/0.
[[nodiscard]] std::optional<bool> parse_on_off(std::string_view text);
// a,b or first-last, first-last+step, first-last*factor, and mixtures; at most 10,000 numbers.
[[nodiscard]] std::optional<std::vector<std::int64_t>> parse_numbers(std::string_view text);
// Token ids separated by commas or white space, brackets around them allowed. Nothing where
// something is no number.
[[nodiscard]] std::optional<std::vector<std::int32_t>> parse_ids(std::string_view text);
// \n \t \r \\ \" \' \0 and \xHH; any other backslash stays.
[[nodiscard]] std::string unescape(std::string_view text);
// The nearest of the names, where one is near enough to be meant (empty: none).
[[nodiscard]] std::string nearest_name(std::string_view wrong,
                                       const std::vector<std::string>& names);

}  // namespace tern::cli
