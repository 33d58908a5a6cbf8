// Unicode facts as splitting text needs them: classes of characters as of Unicode 16, and NFC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tern/cancel.h"

namespace tern::text {

// What the regular expressions of pre-tokenizers can tell apart: \p{L}, \p{N}, \p{M}, \p{P}, \s. No
// character is in two of them.
enum class CharClass : std::uint8_t {
  kOther,
  kLetter,
  kNumber,
  kMark,
  kPunctuation,
  kSpace,  // U+0009..D, 20, 85, A0, 1680, 2000..A, 2028, 2029, 202F, 205F, 3000
};

[[nodiscard]] CharClass char_class(char32_t code);

// One character of a text. A byte that belongs to no valid UTF-8 sequence is a character of its own
// (length 1, kOther, code U+FFFD), so that any bytes can be split and put together again.
struct Char {
  char32_t code = 0;
  CharClass kind = CharClass::kOther;
  std::uint8_t length = 1;  // bytes
};

namespace detail {
consteval std::array<CharClass, 128> ascii_classes() {
  std::array<CharClass, 128> table{};
  for (std::size_t c = 0; c < 128; ++c) {
    const bool symbol = c == '$' || c == '+' || c == '<' || c == '=' || c == '>' || c == '^' ||
                        c == '`' || c == '|' || c == '~';
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      table[c] = CharClass::kLetter;
    } else if (c >= '0' && c <= '9') {
      table[c] = CharClass::kNumber;
    } else if (c == ' ' || (c >= 9 && c <= 13)) {
      table[c] = CharClass::kSpace;
    } else if (c > 32 && c < 127 && !symbol) {
      table[c] = CharClass::kPunctuation;
    }
  }
  return table;
}
inline constexpr std::array<CharClass, 128> kAsciiClasses = ascii_classes();

[[nodiscard]] Char wide_char_at(std::string_view text, std::size_t position);
}  // namespace detail

// The character at position < text.size().
[[nodiscard]] inline Char char_at(std::string_view text, std::size_t position) {
  const auto byte = static_cast<unsigned char>(text[position]);
  if (byte < 128) return {byte, detail::kAsciiClasses[byte], 1};
  return detail::wide_char_at(text, position);
}

// text in normalisation form C as Hugging Face makes it: by the tables of Unicode 9, so that
// characters that came later neither compose nor change places. Bytes that are not valid UTF-8 stay
// as they are, and the stretches between them are normalised each for itself. The result is `text`
// itself where nothing can change, else `storage`. Linear, but for sorting the marks of one
// character. Throws Error(kCancelled) soon after the token is tripped.
[[nodiscard]] std::string_view to_nfc(std::string_view text, std::string& storage,
                                      const CancelToken& cancel = {});

}  // namespace tern::text
