// Parsers of single values. Each takes the whole text or nothing.
#include "cli/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace tern::cli {
namespace {

constexpr std::size_t kMostNumbers = 10'000;

template <class T>
std::optional<T> whole(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

// first-last[+step|*factor], or one number.
bool append_range(std::string_view part, std::vector<std::int64_t>& numbers) {
  const std::size_t dash = part.find('-', 1);
  if (dash == std::string_view::npos) {
    const auto one = parse_tokens(part);
    if (one) numbers.push_back(*one);
    return one.has_value();
  }
  std::string_view last_text = part.substr(dash + 1);
  std::int64_t step = 1;
  bool multiply = false;
  if (const std::size_t mark = last_text.find_first_of("+*"); mark != std::string_view::npos) {
    multiply = last_text[mark] == '*';
    const auto parsed = parse_tokens(last_text.substr(mark + 1));
    if (!parsed || *parsed < (multiply ? 2 : 1)) return false;
    step = *parsed;
    last_text = last_text.substr(0, mark);
  }
  const auto first = parse_tokens(part.substr(0, dash));
  const auto last = parse_tokens(last_text);
  if (!first || !last || *first < 0 || *last < *first || (multiply && *first == 0)) return false;
  std::int64_t value = *first;
  while (value <= *last) {
    if (numbers.size() >= kMostNumbers) return false;
    numbers.push_back(value);
    if (multiply ? value > *last / step : value > *last - step) break;
    value = multiply ? value * step : value + step;
  }
  return true;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Edit distance in which two neighbours that changed places count as one.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> older(b.size() + 1), old(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) old[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = old[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({old[j] + 1, now[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], older[j - 2] + 1);
      }
    }
    older = old;
    old = now;
  }
  return old[b.size()];
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return whole<std::int64_t>(text);
}

std::optional<std::int64_t> parse_tokens(std::string_view text) {
  std::int64_t factor = 1;
  if (!text.empty()) {
    switch (text.back()) {
      case 'k':
      case 'K':
        factor = 1024;
        break;
      case 'm':
      case 'M':
        factor = 1024 * 1024;
        break;
      case 'g':
      case 'G':
        factor = 1024 * 1024 * 1024;
        break;
      default:
        break;
    }
    if (factor != 1) text.remove_suffix(1);
  }
  const auto value = parse_integer(text);
  if (!value) return std::nullopt;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / factor;
  if (*value > most || *value < -most) return std::nullopt;
  return *value * factor;
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = whole<double>(text);
  if (!value || std::isnan(*value)) return std::nullopt;
  return value;
}

std::optional<bool> parse_on_off(std::string_view text) {
  if (text == "on" || text == "true" || text == "1") return true;
  if (text == "off" || text == "false" || text == "0") return false;
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> parse_numbers(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (true) {
    const std::size_t comma = text.find(',');
    if (!append_range(text.substr(0, comma), numbers)) return std::nullopt;
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

std::optional<std::vector<std::int32_t>> parse_ids(std::string_view text) {
  const auto trim = [&] {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) {
      text = {};
    } else {
      text = text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
    }
  };
  trim();
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
    trim();
  }
  std::vector<std::int32_t> ids;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(", \t\r\n");
    const auto id = whole<std::int32_t>(text.substr(0, end));
    if (!id) return std::nullopt;
    ids.push_back(*id);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end);
    // One comma at most between two ids.
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.empty() && text.front() == ',') text.remove_prefix(1);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  return ids;
}

std::string unescape(std::string_view text) {
  static constexpr std::string_view kNames = "ntr\\\"'0";
  static constexpr std::string_view kBytes("\n\t\r\\\"'\0", 7);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    if (const std::size_t known = kNames.find(text[i + 1]); known != std::string_view::npos) {
      out += kBytes[known];
      ++i;
    } else if (text[i + 1] == 'x' && i + 3 < text.size() && hex_digit(text[i + 2]) >= 0 &&
               hex_digit(text[i + 3]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
      i += 3;
    } else {
      out += '\\';
    }
  }
  return out;
}

std::string nearest_name(std::string_view wrong, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, std::min<std::size_t>(3, wrong.size() / 3)) + 1;
  for (const std::string& name : names) {
    const std::size_t d = distance(wrong, name);
    if (d < least) {
      least = d;
      best = name;
    }
  }
  if (!best.empty() || wrong.size() < 3) return best;
  for (const std::string& name : names) {
    if (name.rfind(wrong, 0) == 0) return name;
  }
  return best;
}

}  // namespace tern::cli
