// Validates with a library parser that keeps nothing, then cuts along the top level.
#include "cli/json_text.h"

#include <nlohmann/json.hpp>
#include <set>

#include "cli/cli_error.h"
#include "cli/utf8_text.h"

namespace tern::cli {
namespace {

constexpr int kMostDepth = 64;

// Counts depth and remembers where the text breaks.
class Checker : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return deeper(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    position_ = position;
    return false;
  }
  [[nodiscard]] bool is_too_deep() const { return depth_ > kMostDepth; }
  [[nodiscard]] std::size_t position() const { return position_; }

 private:
  bool deeper() { return ++depth_ <= kMostDepth; }
  int depth_ = 0;
  std::size_t position_ = 0;
};

std::size_t skip_space(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

// End of the value that starts at `at`, in text that is valid JSON.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  int depth = 0;
  for (bool in_string = false; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') {
        ++at;
      } else if (c == '"') {
        in_string = false;
      }
      if (!in_string && depth == 0) return at + 1;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return at;  // the end of what surrounds a number or a word
      if (--depth == 0) return at + 1;
    } else if (depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n')) {
      return at;
    }
  }
  return at;
}

// Of two values of one key a reader would have to drop one in silence. The text is valid JSON.
void refuse_duplicate_keys(std::string_view subject, std::string_view text) {
  struct Level {
    bool is_object;
    bool wants_key;
    std::set<std::string> keys;
  };
  std::vector<Level> levels;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '{' || c == '[') {
      levels.push_back({c == '{', c == '{', {}});
    } else if (c == '}' || c == ']') {
      levels.pop_back();
    } else if (c == ',') {
      levels.back().wants_key = levels.back().is_object;
    } else if (c == '"') {
      const std::size_t end = end_of_value(text, at);
      if (!levels.empty() && levels.back().wants_key) {
        levels.back().wants_key = false;
        const std::string_view quoted = text.substr(at, end - at);
        auto key = nlohmann::json::parse(quoted).get<std::string>();
        if (!levels.back().keys.insert(std::move(key)).second) {
          fail(ErrorCode::kInvalidArgument, subject, "the key {} comes a second time, at byte {}",
               visible(quoted, true), at);
        }
      }
      at = end;
      continue;
    }
    ++at;
  }
}

}  // namespace

std::optional<JsonMembers> json_members(std::string_view subject, std::string_view text) {
  Checker checker;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &checker)) {
    if (checker.is_too_deep()) {
      fail(ErrorCode::kInvalidArgument, subject, "the JSON is nested deeper than {}", kMostDepth);
    }
    fail(ErrorCode::kInvalidArgument, subject, "the JSON breaks at byte {}", checker.position());
  }
  refuse_duplicate_keys(subject, text);
  std::size_t at = skip_space(text, 0);
  if (text.substr(at, 3) == "\xEF\xBB\xBF") at = skip_space(text, at + 3);
  if (at == text.size() || text[at] != '{') return std::nullopt;
  JsonMembers members;
  at = skip_space(text, at + 1);
  while (at < text.size() && text[at] == '"') {
    const std::size_t key_end = end_of_value(text, at);
    auto key = nlohmann::json::parse(text.substr(at, key_end - at)).get<std::string>();
    at = skip_space(text, skip_space(text, key_end) + 1);  // the colon
    const std::size_t value_end = end_of_value(text, at);
    members.emplace_back(std::move(key), text.substr(at, value_end - at));
    at = skip_space(text, value_end);
    if (at < text.size() && text[at] == ',') at = skip_space(text, at + 1);
  }
  return members;
}

std::optional<std::string_view> member(const JsonMembers& members, std::string_view name) {
  std::optional<std::string_view> found;
  for (const auto& [key, value] : members) {
    if (key == name) found = value;
  }
  return found;
}

std::string json_quoted(std::string_view text) { return nlohmann::json(valid_utf8(text)).dump(); }

}  // namespace tern::cli
