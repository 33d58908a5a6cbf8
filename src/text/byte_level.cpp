// Conversion between bytes and the letters that stand for them.
#include "text/byte_level.h"

#include "base/utf8.h"

namespace tern::text {
namespace {

constexpr std::size_t kLetterLimit = 256 + 68;  // one past the highest letter

consteval std::array<std::int16_t, kLetterLimit> letter_bytes() {
  std::array<std::int16_t, kLetterLimit> table{};
  for (auto& entry : table) entry = -1;
  for (std::size_t b = 0; b < 256; ++b) table[kByteLetters[b]] = static_cast<std::int16_t>(b);
  return table;
}
constexpr std::array<std::int16_t, kLetterLimit> kLetterBytes = letter_bytes();

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string spelled;
  spelled.reserve(2 * bytes.size());
  for (const char c : bytes) append_utf8(spelled, kByteLetters[static_cast<unsigned char>(c)]);
  return spelled;
}

std::optional<std::string> unspell_bytes(std::string_view spelled) {
  std::string bytes;
  bytes.reserve(spelled.size());
  while (!spelled.empty()) {
    const DecodedUtf8 c = decode_utf8(spelled);
    if (!c.valid || c.code_point >= kLetterLimit) return std::nullopt;
    const std::int16_t byte = kLetterBytes[c.code_point];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    spelled.remove_prefix(c.length);
  }
  return bytes;
}

}  // namespace tern::text
