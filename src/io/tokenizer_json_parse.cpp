// A check of depth and lengths before parsing, and the handler of parse events.
#include "io/tokenizer_json_parse.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/limits.h"
#include "base/utf8.h"

namespace tern::io {
namespace {

using nlohmann::json;

// "line 3, column 7" of a byte offset.
std::string place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? offset + 1 : offset - newline;
  return fmt::format("line {}, column {}", lines + 1, column);
}

// Depth and string lengths, before a parser spends memory on them. What is not JSON is left to the
// parser.
Result<void> check_shape(std::string_view text, std::string_view name) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') {
      if (++depth > limits::kJsonDepth) {
        return fail(ErrorCode::kInvalidFile, "{}: {}: nested deeper than {} levels", name,
                    place_of(text, i), limits::kJsonDepth);
      }
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == '"') {
      const std::size_t begin = i + 1;
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
        if (i - begin > limits::kJsonStringBytes) {
          return fail(ErrorCode::kInvalidFile, "{}: {}: a string is longer than {} bytes", name,
                      place_of(text, begin), limits::kJsonStringBytes);
        }
      }
    }
  }
  return {};
}

// Receives the parser's events. A function that returns false ends parsing; error_ says why.
class Handler {
 public:
  explicit Handler(TokenizerDocument& out) : out_(out) {}

  bool null() { return value(nullptr, "null"); }
  bool boolean(bool v) { return value(v, v ? "true" : "false"); }
  bool number_integer(std::int64_t v) { return value(v, std::to_string(v)); }
  bool number_unsigned(std::uint64_t v) {
    if (top() == Kind::kVocabulary) return vocabulary_entry(v);
    return value(v, std::to_string(v));
  }
  bool number_float(double v, const std::string& written) { return value(v, written); }
  bool string(std::string& v) {
    if (top() == Kind::kMerges) {
      out_.merges.add(v);
      return true;
    }
    if (top() == Kind::kMergePair) return merge_part(v);
    return value(std::move(v), "a string");
  }
  bool binary(json::binary_t&) { return refuse("binary data"); }
  bool key(std::string& v) {
    frames_.back().key = std::move(v);
    return true;
  }
  bool start_object(std::size_t) {
    if (at_model_key("vocab")) return enter(Kind::kVocabulary, json::object());
    return enter(Kind::kObject, json::object());
  }
  bool start_array(std::size_t) {
    if (at_model_key("merges")) return enter(Kind::kMerges, json::array());
    if (top() == Kind::kMerges) {
      frames_.push_back({Kind::kMergePair, nullptr, {}});
      pair_.clear();
      parts_ = 0;
      return true;
    }
    return enter(Kind::kArray, json::array());
  }
  bool end_object() { return leave(); }
  bool end_array() {
    if (top() == Kind::kMergePair) {
      if (parts_ != 2) return refuse_merge("does not have two tokens");
      out_.merges.add(pair_);
    }
    return leave();
  }
  template <class Exception>
  bool parse_error(std::size_t position, const std::string&, const Exception&) {
    syntax_error_at_ = position;
    return false;
  }

  [[nodiscard]] const std::string& error() const { return error_; }
  // One past the byte at which the text stops being JSON.
  [[nodiscard]] std::optional<std::size_t> syntax_error_at() const { return syntax_error_at_; }

 private:
  enum class Kind { kNone, kObject, kArray, kVocabulary, kMerges, kMergePair };
  struct Frame {
    Kind kind;
    json* node;  // of an object or array of the document
    std::string key;
  };

  [[nodiscard]] Kind top() const { return frames_.empty() ? Kind::kNone : frames_.back().kind; }
  [[nodiscard]] bool at_model_key(std::string_view key) const {
    return frames_.size() == 2 && frames_[0].key == "model" && frames_[1].kind == Kind::kObject &&
           frames_[1].key == key;
  }
  bool refuse(std::string why) {
    error_ = std::move(why);
    return false;
  }
  bool refuse_merge(std::string_view why) {
    return refuse(fmt::format("merge {} {}", out_.merges.size(), why));
  }

  // Puts a value where the parser stands; nullptr where it cannot be.
  json* place(json&& v) {
    if (++values_ > kMaxValues) {
      refuse(fmt::format("more than {} values", kMaxValues));
      return nullptr;
    }
    if (frames_.empty()) {
      out_.json = std::move(v);
      return &out_.json;
    }
    Frame& frame = frames_.back();
    if (frame.kind == Kind::kArray) {
      frame.node->push_back(std::move(v));
      return &frame.node->back();
    }
    const auto [at, added] = frame.node->emplace(frame.key, std::move(v));
    if (!added) {
      refuse(fmt::format("key '{}' is given twice", escape_for_message(frame.key)));
      return nullptr;
    }
    return &*at;
  }
  bool value(json&& v, std::string_view shown) {
    switch (top()) {
      case Kind::kNone:
        return refuse("is not an object");
      case Kind::kVocabulary:
        return refuse(fmt::format("token '{}' has the id {}; ids are numbers from 0 to {}",
                                  escape_for_message(frames_.back().key), shown,
                                  limits::kVocabulary - 1));
      case Kind::kMerges:
      case Kind::kMergePair:
        return refuse_merge(fmt::format("is {}, not a string or two strings", shown));
      default:
        return place(std::move(v)) != nullptr;
    }
  }
  bool vocabulary_entry(std::uint64_t id) {
    if (id >= limits::kVocabulary) return value(id, std::to_string(id));
    out_.vocabulary.add(frames_.back().key);
    out_.ids.push_back(static_cast<std::int32_t>(id));
    return true;
  }
  bool merge_part(const std::string& part) {
    if (part.empty() || part.find(' ') != std::string::npos) {
      return refuse_merge(fmt::format("names '{}', which is no token", escape_for_message(part)));
    }
    if (parts_++ == 1) pair_ += ' ';
    pair_ += part;
    return parts_ <= 2 || refuse_merge("has more than two tokens");
  }
  bool enter(Kind kind, json&& empty) {
    if (top() == Kind::kNone && kind == Kind::kArray) return refuse("is not an object");
    if (top() == Kind::kVocabulary || top() == Kind::kMerges || top() == Kind::kMergePair) {
      return value(nullptr, "a list or an object");
    }
    json* node = place(std::move(empty));
    if (node == nullptr) return false;
    frames_.push_back({kind, node, {}});
    return true;
  }
  bool leave() {
    frames_.pop_back();
    return true;
  }

  TokenizerDocument& out_;
  std::vector<Frame> frames_;
  std::size_t values_ = 0;
  std::string pair_;
  int parts_ = 0;
  std::string error_;
  std::optional<std::size_t> syntax_error_at_;
};

}  // namespace

Result<TokenizerDocument> parse_tokenizer_document(std::string_view text, std::string_view name) {
  TERN_TRY(check_shape(text, name));
  TokenizerDocument document;
  Handler handler(document);
  if (json::sax_parse(text.begin(), text.end(), &handler)) return document;
  if (const auto at = handler.syntax_error_at()) {
    const std::size_t offset = std::min(*at == 0 ? 0 : *at - 1, text.size());
    return fail(ErrorCode::kInvalidFile, "{}: {}: not valid JSON", name, place_of(text, offset));
  }
  return fail(ErrorCode::kInvalidFile, "{}: {}", name, handler.error());
}

}  // namespace tern::io
