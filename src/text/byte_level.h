// The alphabet of byte-level vocabularies: each byte is written as one printable character, so that
// tokens are text ("Ġthe" is " the").
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tern::text {

namespace detail {
// Bytes 33..126, 161..172 and 174..255 stand for themselves; the other 68 are U+0100..U+0143, in
// order.
consteval std::array<char16_t, 256> byte_letters() {
  std::array<char16_t, 256> table{};
  char16_t next = 256;
  for (unsigned b = 0; b < 256; ++b) {
    const bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    table[b] = itself ? static_cast<char16_t>(b) : next++;
  }
  return table;
}
}  // namespace detail

inline constexpr std::array<char16_t, 256> kByteLetters = detail::byte_letters();

// bytes in the alphabet.
[[nodiscard]] std::string spell_bytes(std::string_view bytes);

// The bytes that a text in the alphabet stands for; nothing when a character is not a letter of it.
[[nodiscard]] std::optional<std::string> unspell_bytes(std::string_view spelled);

}  // namespace tern::text
