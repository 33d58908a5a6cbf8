// Code points of UTF-8 text as Python's str sees them: counting, classes, case, searching.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tern::text::jinja {

struct CodePoint {
  char32_t code = 0;
  std::uint8_t length = 1;  // bytes; a byte that belongs to no sequence is one code point, U+FFFD
};

[[nodiscard]] CodePoint code_point_at(std::string_view text, std::size_t position);
// The code point that ends before `end` > 0.
[[nodiscard]] CodePoint code_point_before(std::string_view text, std::size_t end);
void append_utf8(std::string& out, char32_t code);

// Offset of the first byte that is not valid UTF-8.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text);
// Every byte that is not valid becomes U+FFFD.
[[nodiscard]] std::string replace_invalid_utf8(std::string text);
[[nodiscard]] bool is_ascii(std::string_view text);
// Of valid UTF-8.
[[nodiscard]] std::size_t count_code_points(std::string_view text);
// Byte position of the code point with that index, text.size() beyond the end.
[[nodiscard]] std::size_t byte_position(std::string_view text, std::size_t index);

// Unicode white space as str.isspace() and \s have it.
[[nodiscard]] bool is_space(char32_t code);
[[nodiscard]] bool is_letter(char32_t code);
[[nodiscard]] bool is_decimal(char32_t code);
[[nodiscard]] bool is_digit(char32_t code);
[[nodiscard]] bool is_numeric(char32_t code);
[[nodiscard]] bool is_upper(char32_t code);
[[nodiscard]] bool is_lower(char32_t code);
[[nodiscard]] bool is_title(char32_t code);
[[nodiscard]] bool is_printable(char32_t code);
// Part of a name: letter, mark, digit, connector.
[[nodiscard]] bool is_word(char32_t code);

// Full case mappings without context (but see lower_sigma): up to three code points are appended.
void append_upper(std::string& out, char32_t code);
void append_lower(std::string& out, char32_t code);
void append_title(std::string& out, char32_t code);
// What a capital sigma at `position` becomes: the final form at the end of a word.
[[nodiscard]] char32_t lower_sigma(std::string_view text, std::size_t position);
[[nodiscard]] std::string to_lower(std::string_view text);

// First and last place of needle at or after `from`; npos when there is none. Linear in any case.
[[nodiscard]] std::size_t find_text(std::string_view text, std::string_view needle,
                                    std::size_t from = 0);
[[nodiscard]] std::size_t find_last_text(std::string_view text, std::string_view needle);

[[nodiscard]] std::string_view trim_right(std::string_view text);
[[nodiscard]] std::string_view trim(std::string_view text);

}  // namespace tern::text::jinja
