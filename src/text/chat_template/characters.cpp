// Code points of UTF-8 text as Python's str sees them, with the tables of utf8proc.
#include "text/chat_template/characters.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/chat_template/special_casing.h"

namespace tern::text::jinja {
namespace {

constexpr CodePoint kInvalid{0xFFFD, 1};

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The sequence that starts at position, or length 0 when it is not valid.
CodePoint decode(std::string_view text, std::size_t position) {
  const auto first = static_cast<unsigned char>(text[position]);
  if (first < 0x80) return {first, 1};
  const int length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() - position < static_cast<std::size_t>(length)) {
    return {0, 0};
  }
  char32_t code = first & (0x7Fu >> length);
  for (int i = 1; i < length; ++i) {
    const char next = text[position + static_cast<std::size_t>(i)];
    if (!is_continuation(next)) return {0, 0};
    code = (code << 6) | (static_cast<unsigned char>(next) & 0x3Fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (overlong || surrogate || code > 0x10FFFF) return {0, 0};
  return {code, static_cast<std::uint8_t>(length)};
}

const SpecialCase* special_case(char32_t code) {
  const auto* row = std::lower_bound(kSpecialCases.begin(), kSpecialCases.end(), code,
                                     [](const SpecialCase& a, char32_t b) { return a.code < b; });
  return row != kSpecialCases.end() && row->code == code ? row : nullptr;
}

void append_all(std::string& out, const std::array<char32_t, 3>& codes) {
  for (const char32_t code : codes) {
    if (code != 0) append_utf8(out, code);
  }
}

bool is_cased(char32_t code) { return is_upper(code) || is_lower(code) || is_title(code); }

// Characters that a word may hold without having a case: marks, format characters, apostrophes.
bool is_case_ignorable(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return code == '\'' || code == '.' || code == ':' || code == 0xB7 || code == 0x2019;
  }
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t position) {
  const CodePoint found = decode(text, position);
  return found.length == 0 ? kInvalid : found;
}

CodePoint code_point_before(std::string_view text, std::size_t end) {
  for (std::size_t back = 1; back <= 4 && back <= end; ++back) {
    if (is_continuation(text[end - back])) continue;
    const CodePoint found = decode(text, end - back);
    return found.length == back ? found : kInvalid;
  }
  return kInvalid;
}

void append_utf8(std::string& out, char32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint found = decode(text, i);
    if (found.length == 0) return i;
    i += found.length;
  }
  return std::nullopt;
}

bool is_ascii(std::string_view text) {
  unsigned char bits = 0;
  for (const char c : text) bits = static_cast<unsigned char>(bits | static_cast<unsigned char>(c));
  return bits < 0x80;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += is_continuation(c) ? 0 : 1;
  return count;
}

std::string replace_invalid_utf8(std::string text) {
  if (!find_invalid_utf8(text)) return text;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    append_utf8(out, point.code);
    i += point.length;
  }
  return out;
}

std::size_t byte_position(std::string_view text, std::size_t index) {
  std::size_t i = 0;
  while (index-- > 0 && i < text.size()) i += code_point_at(text, i).length;
  return i;
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_letter(char32_t code) {
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t code) {
  return is_decimal(code) || code == 0xB2 || code == 0xB3 || code == 0xB9 || code == 0x2070 ||
         (code >= 0x2074 && code <= 0x2079) || (code >= 0x2080 && code <= 0x2089) ||
         (code >= 0x2460 && code <= 0x2468) || (code >= 0x2474 && code <= 0x247C);
}

bool is_numeric(char32_t code) {
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_upper(char32_t code) { return category(code) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA;
}
bool is_title(char32_t code) { return category(code) == UTF8PROC_CATEGORY_LT; }

bool is_printable(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return code == ' ';
    default:
      return true;
  }
}

bool is_word(char32_t code) {
  if (code < 0x80) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
           (code >= '0' && code <= '9') || code == '_';
  }
  const auto kind = category(code);
  return is_letter(code) || is_numeric(code) || kind == UTF8PROC_CATEGORY_MN ||
         kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_PC;
}

void append_upper(std::string& out, char32_t code) {
  if (code < 0x80) {
    const auto c = static_cast<char>(code);
    out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    return;
  }
  if (const SpecialCase* special = special_case(code)) return append_all(out, special->upper);
  append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
}

void append_lower(std::string& out, char32_t code) {
  if (code < 0x80) {
    const auto c = static_cast<char>(code);
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return;
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  if (code == 0x130) append_utf8(out, 0x307);  // I with a dot keeps the dot
}

void append_title(std::string& out, char32_t code) {
  if (code < 0x80) return append_upper(out, code);
  const SpecialCase* special = special_case(code);
  if (special != nullptr && special->title[0] != 0) return append_all(out, special->title);
  append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
}

char32_t lower_sigma(std::string_view text, std::size_t position) {
  bool before = false;
  for (std::size_t end = position; end > 0;) {
    const CodePoint previous = code_point_before(text, end);
    end -= previous.length;
    if (is_case_ignorable(previous.code)) continue;
    before = is_cased(previous.code);
    break;
  }
  bool after = false;
  for (std::size_t i = position + 2; i < text.size();) {
    const CodePoint next = code_point_at(text, i);
    i += next.length;
    if (is_case_ignorable(next.code)) continue;
    after = is_cased(next.code);
    break;
  }
  return before && !after ? char32_t{0x3C2} : char32_t{0x3C3};
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    if (point.code == 0x3A3) {
      append_utf8(out, lower_sigma(text, i));
    } else {
      append_lower(out, point.code);
    }
    i += point.length;
  }
  return out;
}

std::string_view trim_right(std::string_view text) {
  while (!text.empty()) {
    const CodePoint last = code_point_before(text, text.size());
    if (!is_space(last.code)) break;
    text.remove_suffix(last.length);
  }
  return text;
}

std::string_view trim(std::string_view text) {
  while (!text.empty()) {
    const CodePoint first = code_point_at(text, 0);
    if (!is_space(first.code)) break;
    text.remove_prefix(first.length);
  }
  return trim_right(text);
}

}  // namespace tern::text::jinja
