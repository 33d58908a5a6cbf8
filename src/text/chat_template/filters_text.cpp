// Filters of texts and numbers.
#include <algorithm>
#include <array>

#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/escape.h"
#include "text/chat_template/filters.h"
#include "text/chat_template/format.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/json.h"
#include "text/chat_template/operators.h"
#include "text/chat_template/print.h"
#include "text/chat_template/text_functions.h"

namespace tern::text::jinja {
namespace {

Value plain_text(Runtime& runtime, const Value& subject) {
  const Value text = to_text(subject, &runtime.budget);
  if (!text.string().markup) return text;
  TextBuilder out(&runtime.budget);
  out.append(text.string());
  return out.finish(false);
}

template <Value (*function)(Runtime&, const StringData&)>
Value of_text(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  return function(runtime, to_text(subject, &runtime.budget).string());
}

Value center(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const std::int64_t width = arguments[0] == nullptr ? 80 : to_index(*arguments[0]);
  return pad(runtime, to_text(subject, &runtime.budget).string(), width, " ", true, true);
}

Value default_filter(Runtime& /*runtime*/, const Value& subject, const Bound& arguments) {
  const bool replaced = subject.is_undefined() || (arguments.flag(1, false) && !truth(subject));
  if (!replaced) return subject;
  return arguments[0] != nullptr ? *arguments[0] : Value::string("", Origin::kTemplate);
}

Value escape_filter(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  return escape(subject, &runtime.budget);
}

Value force_escape(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  return escape(plain_text(runtime, subject), &runtime.budget);
}

Value format_filter(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const Arguments& raw = arguments.raw();
  if (!raw.positional.empty() && !raw.named.empty()) {
    raise(FaultKind::kFilterArgument,
          "can't handle positional and keyword arguments at the same time");
  }
  const Value text = to_text(subject, &runtime.budget);
  if (raw.named.empty()) {
    return percent_format(text, Value::tuple(raw.positional, &runtime.budget), &runtime.budget);
  }
  Dict values;
  for (const auto& [name, value] : raw.named) {
    values.set(make_text(name, Origin::kTemplate, &runtime.budget), value, &runtime.budget);
  }
  return percent_format(text, make_dict(std::move(values), &runtime.budget), &runtime.budget);
}

Value indent(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const StringData& text = text_argument(subject, "indent");
  Value unit;
  if (arguments[0] != nullptr && arguments[0]->is_string()) {
    unit = *arguments[0];
  } else {
    const std::int64_t width = arguments[0] == nullptr ? 4 : to_index(*arguments[0]);
    unit = pad(runtime, Value::string("", Origin::kTemplate).string(), width, " ", true, false);
  }
  const bool first = arguments.flag(1, false);
  const bool blank = arguments.flag(2, false);
  TextBuilder out(&runtime.budget);
  // The reference puts a line break behind the text before it takes the lines apart, so that one
  // at the end counts.
  TextBuilder closed(&runtime.budget);
  closed.append(text);
  closed.append("\n");
  const std::vector<Value> lines = split_lines(runtime, closed.finish().string(), false);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    const bool wanted = i == 0 ? first : blank || !lines[i].text().empty();
    if (wanted) out.append(unit.string());
    out.append(lines[i].string());
  }
  return out.finish(text.markup);
}

Value replace_filter(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const Value text = plain_text(runtime, subject);
  const Value old = to_text(*arguments[0], &runtime.budget);
  const Value with = to_text(*arguments[1], &runtime.budget);
  const Value* count = arguments.given(2);
  return replace(runtime, text.string(), old.string(), with.string(),
                 count == nullptr ? -1 : to_index(*count));
}

Value safe(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  TextBuilder out(&runtime.budget);
  append_str(out, subject);
  return out.finish(true);
}

Value string_filter(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  return to_text(subject, &runtime.budget);
}

Value trim_filter(Runtime& runtime, const Value& subject, const Bound& arguments) {
  return strip(runtime, to_text(subject, &runtime.budget).string(), arguments.given(0), true, true);
}

Value truncate(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const auto number = [&](std::size_t i, std::int64_t otherwise) {
    return arguments.given(i) == nullptr ? otherwise : to_index(*arguments[i]);
  };
  const Value end =
      arguments[2] != nullptr ? *arguments[2] : Value::string("...", Origin::kTemplate);
  const auto end_length = static_cast<std::int64_t>(text_argument(end, "truncate").length);
  const std::int64_t length = number(0, 255);
  const std::int64_t leeway = number(3, 5);
  if (length < end_length)
    raise(FaultKind::kValue, "expected length >= {}, got {}", end_length, length);
  if (leeway < 0) raise(FaultKind::kValue, "expected leeway >= 0, got {}", leeway);
  const std::int64_t size = length_of(subject);
  if (size <= length || size - length <= leeway) return subject;
  const StringData& text = text_argument(subject, "truncate");
  runtime.budget.search(text.text.size());
  std::size_t cut = byte_position(text.text, static_cast<std::size_t>(length - end_length));
  if (!arguments.flag(1, false)) {
    const std::size_t blank = std::string_view(text.text).substr(0, cut).rfind(' ');
    if (blank != std::string_view::npos) cut = blank;
  }
  TextBuilder out(&runtime.budget);
  out.append(text, 0, cut);
  out.append(end.string());
  return out.finish(text.markup);
}

JsonStyle json_style(Runtime& runtime, const Bound& arguments) {
  JsonStyle style;
  style.ensure_ascii = arguments.flag(0, false);
  if (const Value* given = arguments.given(1)) {
    style.item_separator = ",";
    style.indent =
        given->is_string()
            ? std::string(given->text())
            : std::string(
                  static_cast<std::size_t>(std::clamp<std::int64_t>(to_index(*given), 0, 1 << 16)),
                  ' ');
  }
  if (const Value* given = arguments.given(2)) {
    const std::vector<Value> parts = to_vector(*given, &runtime.budget);
    if (parts.size() != 2) raise(FaultKind::kValue, "separators are two texts");
    style.item_separator = text_argument(parts[0], "tojson").text;
    style.key_separator = text_argument(parts[1], "tojson").text;
  }
  style.sort_keys = arguments.flag(3, false);
  return style;
}

Value to_json(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const JsonStyle style = json_style(runtime, arguments);
  TextBuilder out(&runtime.budget);
  append_json(out, subject, style);
  return out.finish();
}

Value url_encode(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  TextBuilder out(&runtime.budget);
  const auto append = [&](const Value& part, bool in_query) {
    const Value text = to_text(part, &runtime.budget);
    OriginCursor origin(text.string());
    runtime.budget.characters(text.text().size() * 4);
    for (std::size_t i = 0; i < text.text().size(); ++i) {
      const char c = text.text()[i];
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~' ||
                         (c == '/' && !in_query);
      if (plain) {
        out.append({&c, 1}, origin.at(i));
      } else if (c == ' ' && in_query) {
        out.append("+", origin.at(i));
      } else {
        out.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)), origin.at(i));
      }
    }
  };
  if (subject.is_string() || !is_iterable(subject)) {
    append(subject, false);
    return out.finish();
  }
  const Value pairs =
      subject.is_dict()
          ? Value::object(Kind::kView,
                          std::make_shared<ViewData>(&runtime.budget, subject, ViewKind::kItems))
          : subject;
  bool first = true;
  for (const Value& pair : to_vector(pairs, &runtime.budget)) {
    const std::vector<Value> parts = to_vector(pair, &runtime.budget);
    if (parts.size() != 2) raise(FaultKind::kValue, "urlencode takes pairs");
    if (!first) out.append("&");
    first = false;
    append(parts[0], true);
    out.append("=");
    append(parts[1], true);
  }
  return out.finish();
}

Value word_count(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  const Value text = to_text(subject, &runtime.budget);
  const std::string_view content = text.text();
  runtime.budget.characters(content.size());
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t i = 0; i < content.size();) {
    const CodePoint point = code_point_at(content, i);
    const bool word = is_word(point.code);
    words += word && !inside ? 1 : 0;
    inside = word;
    i += point.length;
  }
  return Value::integer(words);
}

constexpr std::array kFilters = {
    NativeRow{"capitalize", of_text<capitalize>, 0, {}},
    NativeRow{"center", center, 0, {"width"}},
    NativeRow{"d", default_filter, 0, {"default_value", "boolean"}},
    NativeRow{"default", default_filter, 0, {"default_value", "boolean"}},
    NativeRow{"e", escape_filter, 0, {}},
    NativeRow{"escape", escape_filter, 0, {}},
    NativeRow{"forceescape", force_escape, 0, {}},
    NativeRow{"format", format_filter, kVariadic, {}},
    NativeRow{"indent", indent, 0, {"width", "first", "blank"}},
    NativeRow{"lower", of_text<lower>, 0, {}},
    NativeRow{"replace", replace_filter, 2, {"old", "new", "count"}},
    NativeRow{"safe", safe, 0, {}},
    NativeRow{"string", string_filter, 0, {}},
    NativeRow{"title", of_text<title_words>, 0, {}},
    NativeRow{"tojson", to_json, 0, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    NativeRow{"trim", trim_filter, 0, {"chars"}},
    NativeRow{"truncate", truncate, 0, {"length", "killwords", "end", "leeway"}},
    NativeRow{"upper", of_text<upper>, 0, {}},
    NativeRow{"urlencode", url_encode, 0, {}},
    NativeRow{"wordcount", word_count, 0, {}},
};
static_assert(is_sorted(kFilters));

}  // namespace

std::span<const NativeRow> text_filters() { return kFilters; }

}  // namespace tern::text::jinja
