#include "base/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace tern {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

// What may follow a lead byte: the number of bytes and the range of the second one, which is where
// overlong forms, surrogates and values beyond U+10FFFF are excluded (table 3-7 of the standard).
struct Lead {
  std::size_t length = 0;  // 0: not a lead byte
  std::uint8_t second_min = 0x80;
  std::uint8_t second_max = 0xbf;
};

constexpr Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xc2) return {0};
  if (byte < 0xe0) return {2};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0};
}

// The bytes at the start of text that fit into one sequence with this lead: lead.length when it is
// complete.
std::size_t matching_bytes(std::string_view text, Lead lead) {
  std::size_t n = 1;
  while (n < lead.length && n < text.size()) {
    const std::uint8_t byte = byte_at(text, n);
    const bool fits =
        n == 1 ? byte >= lead.second_min && byte <= lead.second_max : (byte & 0xc0u) == 0x80u;
    if (!fits) break;
    ++n;
  }
  return n;
}

}  // namespace

DecodedUtf8 decode_utf8(std::string_view text) {
  const std::uint8_t first = byte_at(text, 0);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = lead_of(first);
  if (lead.length == 0) return {kReplacementCharacter, 1, false};
  const std::size_t n = matching_bytes(text, lead);
  if (n < lead.length) return {kReplacementCharacter, n, false};
  char32_t code_point = first & (0x7fu >> lead.length);
  for (std::size_t i = 1; i < n; ++i) code_point = (code_point << 6) | (byte_at(text, i) & 0x3fu);
  return {code_point, n, true};
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (byte_at(text, i) < 0x80) {
      ++i;
      continue;
    }
    const DecodedUtf8 step = decode_utf8(text.substr(i));
    if (!step.valid) return i;
    i += step.length;
  }
  return std::nullopt;
}

std::size_t incomplete_utf8_suffix(std::string_view text) {
  for (std::size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    const std::string_view suffix = text.substr(text.size() - n);
    if ((byte_at(suffix, 0) & 0xc0u) == 0x80u) continue;  // not yet at the lead byte
    const Lead lead = lead_of(byte_at(suffix, 0));
    return lead.length > n && matching_bytes(suffix, lead) == n ? n : 0;
  }
  return 0;
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&text](char32_t byte) { text += static_cast<char>(byte); };
  if (code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff)) {
    code_point = kReplacementCharacter;
  }
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    put(0xe0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3f));
    put(0x80 | (code_point & 0x3f));
  } else {
    put(0xf0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3f));
    put(0x80 | ((code_point >> 6) & 0x3f));
    put(0x80 | (code_point & 0x3f));
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const DecodedUtf8 step = decode_utf8(text.substr(i));
    if (step.valid) {
      result.append(text.substr(i, step.length));
    } else {
      append_utf8(result, kReplacementCharacter);
    }
    i += step.length;
  }
  return result;
}

std::string escape_for_message(std::string_view text, std::size_t max_bytes) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const DecodedUtf8 step = decode_utf8(text.substr(i));
    if (i + step.length > max_bytes) return result + "...";
    const std::string_view bytes = text.substr(i, step.length);
    const char32_t c = step.code_point;
    // Controls (C0, DEL, C1), and what reorders or breaks a line on a terminal.
    const bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) ||
                            (c >= 0x2066 && c <= 0x2069);
    if (step.valid && c == '\n') {
      result += "\\n";
    } else if (step.valid && c == '\t') {
      result += "\\t";
    } else if (step.valid && c == '\r') {
      result += "\\r";
    } else if (step.valid && c == '\\') {
      result += "\\\\";
    } else if (step.valid && !is_control) {
      result += bytes;
    } else {
      for (const char byte : bytes) {
        fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<std::uint8_t>(byte));
      }
    }
    i += step.length;
  }
  return result;
}

}  // namespace tern
