// JSON to values and back: requests come in as text, the filter tojson writes text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // per level; absent: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// json.dumps; a TypeError for values that JSON does not have.
void append_json(TextBuilder& out, const Value& value, const JsonStyle& style);

// Strict JSON with its key order, at most 64 levels deep; texts are data. A key that comes twice in
// an object is refused. The error names the byte.
[[nodiscard]] Result<Value> value_from_json(std::string_view text);

// What a value of JSON is called there: "null", "a number", "an object".
[[nodiscard]] std::string_view json_type_name(const Value& value);

}  // namespace tern::text::jinja
