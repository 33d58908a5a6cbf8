// '{}'.format(values): fields with names, numbers, attributes and a format of their own.
#include <algorithm>

#include "text/chat_template/characters.h"
#include "text/chat_template/format.h"
#include "text/chat_template/format_spec.h"
#include "text/chat_template/print.h"

namespace tern::text::jinja {
namespace {

Spec parse_spec(std::string_view text) {
  Spec spec;
  std::size_t i = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    const std::size_t first = code_point_at(text, 0).length;
    if (first < text.size() && is_align(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      i = first + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      i = 1;
    }
  }
  if (i < text.size() && (text[i] == '+' || text[i] == '-' || text[i] == ' ')) {
    spec.sign = text[i++];
  }
  if (i < text.size() && text[i] == '#') {
    spec.alternate = true;
    ++i;
  }
  if (i < text.size() && text[i] == '0') {
    if (spec.align == 0) {
      spec.align = '=';
      spec.fill = "0";
    }
    ++i;
  }
  spec.width = read_size(text, i, kMaxFormatWidth);
  if (i < text.size() && text[i] == ',') {
    spec.grouped = true;
    ++i;
  }
  if (i < text.size() && text[i] == '.') {
    spec.precision = static_cast<int>(read_size(text, ++i, kMaxFormatPrecision));
  }
  if (i < text.size()) spec.type = text[i++];
  if (i != text.size()) raise(FaultKind::kValue, "Invalid format specifier");
  return spec;
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Value& format, const Arguments& arguments)
      : runtime_(runtime), format_(format.string()), arguments_(arguments), out_(&runtime.budget) {}

  Value run() {
    const std::string& text = format_.text;
    runtime_.budget.search(text.size());
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] != '{' && text[i] != '}') {
        ++i;
        continue;
      }
      out_.append(format_, begin, i);
      if (i + 1 < text.size() && text[i + 1] == text[i]) {
        out_.append(format_, i, i + 1);
        i += 2;
      } else if (text[i] == '}') {
        raise(FaultKind::kValue, "Single '}}' encountered in format string");
      } else {
        const std::size_t close = text.find('}', i);
        if (close == std::string::npos) {
          raise(FaultKind::kValue, "expected '}}' before end of string");
        }
        replace(std::string_view(text).substr(i + 1, close - i - 1));
        i = close + 1;
      }
      begin = i;
    }
    out_.append(format_, begin, text.size());
    return out_.finish(format_.markup);
  }

 private:
  void replace(std::string_view field) {
    runtime_.budget.step();
    const std::size_t colon = std::min(field.find(':'), field.size());
    const std::string_view form = colon < field.size() ? field.substr(colon + 1) : "";
    const Spec spec = parse_spec(form);
    std::string_view name = field.substr(0, colon);
    char conversion = 0;
    if (name.size() >= 2 && name[name.size() - 2] == '!') {
      conversion = name.back();
      name.remove_suffix(2);
    }
    if (name.find('{') != std::string_view::npos) {
      raise(FaultKind::kValue, "nested replacement fields are not supported");
    }
    Value value = lookup(name);
    if (conversion == 'r') value = repr_text(value, &runtime_.budget);
    if (conversion == 's') value = to_text(value, &runtime_.budget);
    if (!form.empty() && !value.is_string() && !is_number(value)) {
      raise(FaultKind::kType, "unsupported format string passed to {}.__format__",
            type_name(value));
    }
    append(value, spec);
  }

  void append(const Value& value, const Spec& spec) {
    const bool plain_bool = value.is(Kind::kBool) && spec.type == 0;
    if (is_number(value) && !plain_bool) {
      if (spec.type == 's') {
        raise(FaultKind::kValue, "Unknown format code 's' for object of type '{}'",
              type_name(value));
      }
      return append_number(out_, value, spec);
    }
    if (spec.type != 0 && spec.type != 's') {
      raise(FaultKind::kValue, "Unknown format code for object of type '{}'", type_name(value));
    }
    append_text(out_, to_text(value, &runtime_.budget), spec);
  }

  // name, number or nothing, then .attribute and [item] parts.
  Value lookup(std::string_view name) {
    const std::size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, end));
    std::size_t i = end;
    while (i < name.size()) {
      if (name[i] == '.') {
        const std::size_t stop = std::min(name.find_first_of(".[", i + 1), name.size());
        value = get_attribute(runtime_, value, name.substr(i + 1, stop - i - 1));
        i = stop;
      } else {
        const std::size_t stop = name.find(']', i);
        if (stop == std::string_view::npos)
          raise(FaultKind::kValue, "Missing ']' in format string");
        const std::string_view key = name.substr(i + 1, stop - i - 1);
        value = get_item(runtime_, value, key_value(key));
        i = stop + 1;
      }
    }
    return value;
  }

  static bool is_index(std::string_view text) {
    return !text.empty() && text.size() <= 9 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  }

  static Value key_value(std::string_view key) {
    if (!is_index(key)) return Value::string(std::string(key), Origin::kTemplate);
    std::size_t at = 0;
    return Value::integer(static_cast<std::int64_t>(read_size(key, at, 999'999'999)));
  }

  Value argument(std::string_view name) {
    std::size_t index = 0;
    if (name.empty()) {
      index = next_++;
    } else if (is_index(name)) {
      std::size_t at = 0;
      index = read_size(name, at, 999'999'999);
    } else {
      runtime_.budget.items(arguments_.named.size());
      for (const auto& [key, value] : arguments_.named) {
        if (key == name) return value;
      }
      raise(FaultKind::kValue, "format has no argument {}", quote(name));
    }
    if (index >= arguments_.positional.size()) {
      raise(FaultKind::kIndex, "Replacement index {} out of range for positional args tuple",
            index);
    }
    return arguments_.positional[index];
  }

  Runtime& runtime_;
  const StringData& format_;
  const Arguments& arguments_;
  TextBuilder out_;
  std::size_t next_ = 0;
};

}  // namespace

Value brace_format(Runtime& runtime, const Value& format, const Arguments& arguments) {
  return BraceFormatter(runtime, format, arguments).run();
}

}  // namespace tern::text::jinja
