#include "backend/cache/key.h"

#include <algorithm>
#include <cstdint>

#include "base/hash.h"

namespace tern::cache {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_line_name(std::string_view name) {
  if (name.empty() || !is_lower(name.front())) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_lower(c) || is_digit(c) || c == '_' || c == '.'; });
}

// The length of the well-formed UTF-8 character at the start of the text; 0: none is there.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  const std::uint8_t second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return size;
}

std::string escape_value(std::string_view value) {
  std::string text;
  text.reserve(value.size());
  while (!value.empty()) {
    const std::size_t size = character_bytes(value);
    const char c = value.front();
    if (size == 0) {
      text += fmt::format("\\x{:02X}", static_cast<unsigned>(static_cast<std::uint8_t>(c)));
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (c == '\0') {
      text += "\\0";
    } else if (c == '\\') {
      text += "\\\\";
    } else {
      text += value.substr(0, size);
    }
    value.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return text;
}

unsigned hex_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  return c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A' + 10) : 0;
}

std::string unescape_value(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      value += text[i];
      continue;
    }
    const char c = text[++i];
    if (c == 'x' && i + 2 < text.size()) {
      value += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      value += c == 'n' ? '\n' : c == 'r' ? '\r' : c == '0' ? '\0' : c;
    }
  }
  return value;
}

// A folder of that name can neither be hidden nor lead elsewhere.
std::string folder_name(std::string_view text) {
  constexpr std::size_t kMostBytes = 64;
  std::string name(text.substr(0, kMostBytes));
  for (char& c : name) {
    const bool is_plain = is_lower(c) || is_digit(c) || (c >= 'A' && c <= 'Z') || c == '.' ||
                          c == '_' || c == '+' || c == '-';
    if (!is_plain) c = '_';
  }
  if (name.empty() || name.front() == '.') name.insert(0, "_");
  return name;
}

}  // namespace

Result<Key> Key::from_lines(std::string_view backend, std::string_view architecture,
                            std::vector<KeyLine> lines) {
  Key key;
  key.backend_ = folder_name(backend);
  key.architecture_ = folder_name(architecture);
  for (const KeyLine& line : lines) {
    if (!is_line_name(line.name) || line.name == "format") {
      return fail(ErrorCode::kInvalidArgument,
                  "cache key: '{}' is no name of a field: lower-case letters, digits, '_' and '.' "
                  "are expected, and 'format' is added by the cache",
                  line.name);
    }
  }
  key.lines_ = std::move(lines);
  std::vector<KeyLine> sorted = key.lines_;
  sorted.push_back({"format", std::to_string(kFormatVersion)});
  std::sort(sorted.begin(), sorted.end(),
            [](const KeyLine& a, const KeyLine& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && sorted[i].name == sorted[i - 1].name) {
      return fail(ErrorCode::kInvalidArgument, "cache key: the field '{}' comes twice",
                  sorted[i].name);
    }
    key.text_ += sorted[i].name;
    key.text_ += '=';
    key.text_ += escape_value(sorted[i].value);
    key.text_ += '\n';
  }
  if (key.text_.size() > kMostKeyBytes) {
    return fail(ErrorCode::kInvalidArgument, "cache key: {} bytes of text, at most {} are allowed",
                key.text_.size(), kMostKeyBytes);
  }
  key.hash_ = sha256_hex(key.text_);
  return key;
}

Result<Key> Key::with(std::vector<KeyLine> more) const {
  std::vector<KeyLine> lines = lines_;
  lines.insert(lines.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  return from_lines(backend_, architecture_, std::move(lines));
}

std::string value_of_line(std::string_view key_text, std::string_view name) {
  while (!key_text.empty()) {
    const std::size_t end = key_text.find('\n');
    const std::string_view line = key_text.substr(0, end);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=') {
      return unescape_value(line.substr(name.size() + 1));
    }
    if (end == std::string_view::npos) break;
    key_text.remove_prefix(end + 1);
  }
  return {};
}

}  // namespace tern::cache
