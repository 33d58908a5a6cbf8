// The one UTF-8 validator, decoder and encoder: strict, and the same answer everywhere.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tern {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// One step of decoding. When !valid, code_point is U+FFFD and length is that of the longest prefix
// of a valid sequence found there (the "maximal subpart" of the Unicode standard, at least 1): that
// many bytes become one U+FFFD.
struct DecodedUtf8 {
  char32_t code_point = kReplacementCharacter;
  std::size_t length = 0;  // bytes, 1 to 4
  bool valid = false;
};

// Decodes at the start of text, which must not be empty. Overlong forms, surrogates and values
// above U+10FFFF are invalid.
[[nodiscard]] DecodedUtf8 decode_utf8(std::string_view text);

// The offset of the first invalid byte sequence, or nothing when all of text is valid.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// How many bytes at the end of text are the beginning of a sequence that more bytes could complete:
// 0 to 3. Streaming output holds these back.
[[nodiscard]] std::size_t incomplete_utf8_suffix(std::string_view text);

// Appends the code point; a surrogate or a value above U+10FFFF is appended as U+FFFD.
void append_utf8(std::string& text, char32_t code_point);

// text with every maximal invalid part replaced by U+FFFD.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view text);

// text for a message or a log line: control characters and invalid bytes become \n, \x1b and so on,
// a backslash is doubled, and beyond max_bytes of input it is cut (never inside a character) and
// ends in "...".
[[nodiscard]] std::string escape_for_message(std::string_view text, std::size_t max_bytes = 64);

}  // namespace tern
