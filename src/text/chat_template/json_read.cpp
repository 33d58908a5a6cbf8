// JSON text to values, event by event: no tree of another library in between, and no recursion.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/chat_template/json.h"

namespace tern::text::jinja {
namespace {

class ValueReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
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

  Value root_;
  std::vector<Level> levels_;
  std::string problem_;
};

}  // namespace

Result<Value> value_from_json(std::string_view text) {
  ValueReader reader;
  if (!nlohmann::json::sax_parse(text, &reader)) {
    return fail(ErrorCode::kInvalidArgument, "JSON: {}", reader.problem());
  }
  return reader.take();
}

}  // namespace tern::text::jinja
