// Strict UTF-8 checks and the small formats that several commands share.
#include "cli/utf8_text.h"

#include <fmt/format.h>

namespace tern::cli {
namespace {

// Length of the valid sequence at the start of text, or 0.
std::size_t sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence(text.substr(at));
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      ++at;
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  return out;
}

std::string visible(std::string_view text, bool all) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = sequence(text.substr(at));
    // C0, DEL, and C1 (two bytes, c2 80 .. c2 9f), which terminals obey too.
    const bool is_c1 =
        length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (!all && (byte == '\n' || byte == '\t')) {
      out += text[at];
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte == '\r') {
      out += "\\r";
    } else if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (is_c1) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[at + 1]));
    } else {
      out += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return out;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  std::size_t characters = 0;
  std::size_t keep = 0;  // bytes of the first columns - 3 characters
  for (std::size_t at = 0; at < text.size(); ++characters) {
    if (characters + 3 <= columns) keep = at;
    const std::size_t length = sequence(text.substr(at));
    at += length == 0 ? 1 : length;
  }
  if (characters <= columns) return std::string(text);
  return std::string(text.substr(0, keep)) + "...";
}

std::string grouped(std::uint64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string binary_size(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1024ULL * 1024 * 1024) return fmt::format("{:.2f} GiB", value / 1073741824.0);
  if (bytes >= 1024ULL * 1024) return fmt::format("{:.2f} MiB", value / 1048576.0);
  return fmt::format("{:.2f} KiB", value / 1024.0);
}

std::string parameter_count(std::uint64_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.2f} B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.2f} M", value / 1e6);
  return fmt::format("{:.2f} K", value / 1e3);
}

}  // namespace tern::cli
