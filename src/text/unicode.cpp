// Character classes: utf8proc's tables (Unicode 15.0) and the code points that came after them.
#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace tern::text {
namespace {

struct Range {
  char32_t first, last;
  CharClass kind;
};

// Letters, numbers, marks and punctuation of Unicode 15.1 and 16.0, sorted. No older character has
// changed its class since 15.0. Made by comparing the general categories of utf8proc 2.8 with those
// of the Python package unicodedata2 16.0.0.
constexpr CharClass kL = CharClass::kLetter, kN = CharClass::kNumber, kM = CharClass::kMark,
                    kP = CharClass::kPunctuation;
constexpr std::array kSinceUnicode15 = {
    Range{0x0897, 0x0897, kM},   Range{0x1B4E, 0x1B4F, kP},   Range{0x1B7F, 0x1B7F, kP},
    Range{0x1C89, 0x1C8A, kL},   Range{0xA7CB, 0xA7CD, kL},   Range{0xA7DA, 0xA7DC, kL},
    Range{0x105C0, 0x105F3, kL}, Range{0x10D40, 0x10D49, kN}, Range{0x10D4A, 0x10D65, kL},
    Range{0x10D69, 0x10D6D, kM}, Range{0x10D6E, 0x10D6E, kP}, Range{0x10D6F, 0x10D85, kL},
    Range{0x10EC2, 0x10EC4, kL}, Range{0x10EFC, 0x10EFC, kM}, Range{0x11380, 0x11389, kL},
    Range{0x1138B, 0x1138B, kL}, Range{0x1138E, 0x1138E, kL}, Range{0x11390, 0x113B5, kL},
    Range{0x113B7, 0x113B7, kL}, Range{0x113B8, 0x113C0, kM}, Range{0x113C2, 0x113C2, kM},
    Range{0x113C5, 0x113C5, kM}, Range{0x113C7, 0x113CA, kM}, Range{0x113CC, 0x113D0, kM},
    Range{0x113D1, 0x113D1, kL}, Range{0x113D2, 0x113D2, kM}, Range{0x113D3, 0x113D3, kL},
    Range{0x113D4, 0x113D5, kP}, Range{0x113D7, 0x113D8, kP}, Range{0x113E1, 0x113E2, kM},
    Range{0x116D0, 0x116E3, kN}, Range{0x11BC0, 0x11BE0, kL}, Range{0x11BE1, 0x11BE1, kP},
    Range{0x11BF0, 0x11BF9, kN}, Range{0x11F5A, 0x11F5A, kM}, Range{0x13460, 0x143FA, kL},
    Range{0x16100, 0x1611D, kL}, Range{0x1611E, 0x1612F, kM}, Range{0x16130, 0x16139, kN},
    Range{0x16D40, 0x16D6C, kL}, Range{0x16D6D, 0x16D6F, kP}, Range{0x16D70, 0x16D79, kN},
    Range{0x18CFF, 0x18CFF, kL}, Range{0x1CCF0, 0x1CCF9, kN}, Range{0x1E5D0, 0x1E5ED, kL},
    Range{0x1E5EE, 0x1E5EF, kM}, Range{0x1E5F0, 0x1E5F0, kL}, Range{0x1E5F1, 0x1E5FA, kN},
    Range{0x1E5FF, 0x1E5FF, kP}, Range{0x2EBF0, 0x2EE5D, kL},
};

CharClass class_since_unicode_15(char32_t code) {
  const auto* at = std::lower_bound(kSinceUnicode15.begin(), kSinceUnicode15.end(), code,
                                    [](const Range& r, char32_t c) { return r.last < c; });
  return at != kSinceUnicode15.end() && code >= at->first ? at->kind : CharClass::kOther;
}

}  // namespace

CharClass char_class(char32_t code) {
  if (code < 128) return detail::kAsciiClasses[code];
  if (code == 0x85) return CharClass::kSpace;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::kNumber;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return CharClass::kMark;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return CharClass::kPunctuation;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharClass::kSpace;
    case UTF8PROC_CATEGORY_CN:
      return class_since_unicode_15(code);
    default:
      return CharClass::kOther;
  }
}

namespace detail {

Char wide_char_at(std::string_view text, std::size_t position) {
  const DecodedUtf8 decoded = decode_utf8(text.substr(position, 4));
  if (!decoded.valid) return {kReplacementCharacter, CharClass::kOther, 1};
  return {decoded.code_point, char_class(decoded.code_point),
          static_cast<std::uint8_t>(decoded.length)};
}

}  // namespace detail
}  // namespace tern::text
