// JSON text to values, event by event: no tree of another library in between, and no recursion.
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "text/chat_template/json.h"

namespace tern::text::jinja {
namespace {

// Walks over a text and says how far a parser that copies it has come.
class CountedIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedIterator() = default;
  CountedIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  CountedIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  CountedIterator operator++(int) {
    CountedIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountedIterator& a, const CountedIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_ = nullptr;
  const char** furthest_ = nullptr;
};

// Where a string starts that ends in front of `end`, in text that is valid JSON up to there.
std::size_t start_of_string(std::string_view text, std::size_t end) {
  for (std::size_t at = end - 1; at-- > 0;) {
    if (text[at] != '"') continue;
    std::size_t first = at;  // of the backslashes in front of it
    while (first > 0 && text[first - 1] == '\\') --first;
    if ((at - first) % 2 == 0) return at;
  }
  return 0;
}

class ValueReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ValueReader(std::string_view text) : text_(text), furthest_(text.data()) {}
  [[nodiscard]] bool parse() {
    const char* end = text_.data() + text_.size();
    return nlohmann::json::sax_parse(CountedIterator(text_.data(), &furthest_),
                                     CountedIterator(end, &furthest_), this);
  }

  bool null() override { return add(Value::none()); }
  bool boolean(bool value) override { return add(Value::boolean(value)); }
  bool number_integer(number_integer_t value) override { return add(Value::integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) {
      return add(Value::big_integer(std::to_string(value)));
    }
    return add(Value::integer(static_cast<std::int64_t>(value)));
  }
  // Integers beyond 64 bits arrive here, with their digits.
  bool number_float(number_float_t value, const string_t& digits) override {
    if (digits.find_first_of(".eE") == std::string::npos) {
      if (digits.size() > kMaxIntegerDigits) {
        return stop(fmt::format("an integer of {} digits; at most {} are allowed", digits.size(),
                                kMaxIntegerDigits));
      }
      return add(Value::big_integer(digits));
    }
    return add(Value::real(value));
  }
  bool string(string_t& value) override {
    if (value.size() > kMaxJsonStringBytes) {
      return stop(fmt::format("a string of {} bytes; at most {} are allowed", value.size(),
                              kMaxJsonStringBytes));
    }
    return add(Value::string(std::move(value)));
  }
  bool binary(binary_t& /*value*/) override { return stop("binary data"); }

  bool start_object(std::size_t /*elements*/) override { return open(true); }
  bool start_array(std::size_t /*elements*/) override { return open(false); }
  bool key(string_t& value) override {
    // Of two values of one key a reader would have to drop one in silence.
    if (levels_.back().dict.find(value) != nullptr) {
      const auto end = static_cast<std::size_t>(furthest_ - text_.data());
      return stop(fmt::format("the key \"{}\" comes a second time, at byte {}",
                              escape_for_message(value), start_of_string(text_, end)));
    }
    levels_.back().key = Value::string(std::move(value));
    return true;
  }
  bool end_object() override {
    Value value = make_dict(std::move(levels_.back().dict));
    levels_.pop_back();
    return add(std::move(value));
  }
  bool end_array() override {
    Value value = Value::list(std::move(levels_.back().items));
    levels_.pop_back();
    return add(std::move(value));
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return stop(fmt::format("not valid JSON at byte {}", position));
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] Value take() { return std::move(root_); }

 private:
  struct Level {
    bool object;
    Value key;
    std::vector<Value> items;
    Dict dict;
  };

  bool stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool open(bool object) {
    if (levels_.size() >= static_cast<std::size_t>(kMaxJsonDepth)) {
      return stop(fmt::format("nested deeper than {} levels", kMaxJsonDepth));
    }
    levels_.push_back({object, Value(), {}, {}});
    return true;
  }
  bool add(Value value) {
    if (levels_.empty()) {
      root_ = std::move(value);
    } else if (levels_.back().object) {
      levels_.back().dict.set(std::move(levels_.back().key), std::move(value), nullptr);
    } else {
      levels_.back().items.push_back(std::move(value));
    }
    return true;
  }

  std::string_view text_;
  const char* furthest_;  // behind the last byte that the parser took
  Value root_;
  std::vector<Level> levels_;
  std::string problem_;
};

}  // namespace

Result<Value> value_from_json(std::string_view text) {
  ValueReader reader(text);
  if (!reader.parse()) {
    return fail(ErrorCode::kInvalidArgument, "JSON: {}", reader.problem());
  }
  return reader.take();
}

std::string_view json_type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone:
      return "null";
    case Kind::kBool:
      return value.as_bool() ? "true" : "false";
    case Kind::kInt:
    case Kind::kBigInt:
    case Kind::kFloat:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kDict:
      return "an object";
    default:
      return type_name(value);  // not of JSON
  }
}

}  // namespace tern::text::jinja
