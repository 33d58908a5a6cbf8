// Text for people: whole characters, visible control characters, numbers with separators, sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tern::cli {

// Offset of the first byte that is not part of valid UTF-8 (strict: no overlong forms, no
// surrogates), or npos.
[[nodiscard]] std::size_t find_invalid_utf8(std::string_view text);
// Invalid bytes become U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);
// Control characters become \x1b and the like; tab and line feed stay unless `all`, which also
// turns them into \t and \n.
[[nodiscard]] std::string visible(std::string_view text, bool all);
// At most `columns` characters; a cut is marked by "..." and never falls inside a character.
[[nodiscard]] std::string cut_to(std::string_view text, std::size_t columns);
// 3,072.
[[nodiscard]] std::string grouped(std::uint64_t value);
// "1.07 GiB", "93.80 MiB".
[[nodiscard]] std::string binary_size(std::uint64_t bytes);
// "8.19 B", "134.52 M".
[[nodiscard]] std::string parameter_count(std::uint64_t count);

}  // namespace tern::cli
