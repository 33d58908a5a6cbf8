// str() and repr() of values, letter for letter as Python writes them.
#include "text/chat_template/print.h"

#include <array>
#include <charconv>
#include <cmath>

#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/objects.h"

namespace tern::text::jinja {
namespace {

void append_nested(TextBuilder& out, const Value& value, int depth);

void append_quoted(TextBuilder& out, const StringData& text) {
  const bool single = text.text.find('\'') != std::string::npos;
  const bool both = single && text.text.find('"') != std::string::npos;
  const char quote_mark = single && !both ? '"' : '\'';
  out.append(std::string_view(&quote_mark, 1));
  OriginCursor origin(text);
  std::string piece;
  for (std::size_t i = 0; i < text.text.size();) {
    const CodePoint point = code_point_at(text.text, i);
    piece.clear();
    if (point.code == '\\' || (both && point.code == '\'')) {
      piece = '\\';
      piece += static_cast<char>(point.code);
    } else if (point.code == '\n' || point.code == '\r' || point.code == '\t') {
      piece = point.code == '\n' ? "\\n" : point.code == '\r' ? "\\r" : "\\t";
    } else if (is_printable(point.code)) {
      piece.assign(text.text, i, point.length);
    } else {
      const auto code = static_cast<std::uint32_t>(point.code);
      piece = code < 0x100     ? fmt::format("\\x{:02x}", code)
              : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                               : fmt::format("\\U{:08x}", code);
    }
    out.append(piece, origin.at(i));
    i += point.length;
  }
  out.append(std::string_view(&quote_mark, 1));
}

void append_sequence(TextBuilder& out, const std::vector<Value>& items, bool tuple, int depth) {
  out.append(tuple ? "(" : "[");
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ");
    append_nested(out, items[i], depth);
  }
  if (tuple && items.size() == 1) out.append(",");
  out.append(tuple ? ")" : "]");
}

void append_dict(TextBuilder& out, const Dict& dict, int depth) {
  out.append("{");
  bool first = true;
  for (const Dict::Entry& entry : dict.entries()) {
    if (!first) out.append(", ");
    first = false;
    append_nested(out, entry.key, depth);
    out.append(": ");
    append_nested(out, entry.value, depth);
  }
  out.append("}");
}

void append_view(TextBuilder& out, const Value& value, int depth) {
  out.append(type_name(value));
  out.append("(");
  append_sequence(out, to_vector(value, out.budget()), false, depth);
  out.append(")");
}

void append_range(TextBuilder& out, const RangeData& range) {
  out.append(range.step == 1
                 ? fmt::format("range({}, {})", range.start, range.stop)
                 : fmt::format("range({}, {}, {})", range.start, range.stop, range.step));
}

// What has no text of its own in Python gets its type's name, without an address.
void append_object(TextBuilder& out, const Value& value, int depth) {
  switch (value.kind()) {
    case Kind::kNamespace:
      out.append("<Namespace ");
      append_dict(out, value.space().attributes, depth);
      out.append(">");
      return;
    case Kind::kMacro:
      out.append(fmt::format("<Macro {}>", quote(macro_name(value))));
      return;
    case Kind::kLoop:
      out.append(loop_text(value));
      return;
    default:
      out.append(fmt::format("<{} object>", type_name(value)));
  }
}

void append_nested(TextBuilder& out, const Value& value, int depth) {
  if (depth > kMaxValueDepth) {
    raise(FaultKind::kRecursion, "values are nested deeper than {} levels", kMaxValueDepth);
  }
  if (out.budget() != nullptr) out.budget()->step();
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return out.append("Undefined");
    case Kind::kNone:
      return out.append("None");
    case Kind::kBool:
      return out.append(value.as_bool() ? "True" : "False");
    case Kind::kInt:
      return out.append(fmt::format("{}", value.as_integer()));
    case Kind::kFloat:
      return out.append(format_real(value.as_real()));
    case Kind::kBigInt:
      return out.append(value.text());
    case Kind::kString:
      if (value.string().markup) out.append("Markup(");
      append_quoted(out, value.string());
      if (value.string().markup) out.append(")");
      return;
    case Kind::kList:
    case Kind::kTuple:
      return append_sequence(out, value.items(), value.is(Kind::kTuple), depth + 1);
    case Kind::kDict:
      return append_dict(out, value.dict().dict, depth + 1);
    case Kind::kView:
      return append_view(out, value, depth + 1);
    case Kind::kRange:
      return append_range(out, value.as<RangeData>());
    default:
      return append_object(out, value, depth + 1);
  }
}

}  // namespace

void append_str(TextBuilder& out, const Value& value) {
  if (value.is_string()) return out.append(value.string());
  if (value.is_undefined()) {
    return;  // also the refused names: only their use is an error
  }
  append_nested(out, value, 0);
}

void append_repr(TextBuilder& out, const Value& value) { append_nested(out, value, 0); }

Value to_text(const Value& value, Budget* budget) {
  if (value.is_string()) return value;
  TextBuilder out(budget);
  append_str(out, value);
  return out.finish();
}

std::string format_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = text.find('e');
  int exponent = 0;
  const std::size_t digits_at = text[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(text.data() + digits_at, text.data() + text.size(), exponent);
  std::string mantissa(text.substr(0, e));
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02}", mantissa, exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  const auto end_fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed)
          .ptr;
  std::string fixed(buffer.data(), end_fixed);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

std::string quote(std::string_view text) {
  TextBuilder out(nullptr);
  append_quoted(out, StringData(nullptr, std::string(text), {}, Origin::kTemplate, false));
  return out.take();
}

std::string shortened(std::string_view text) {
  const std::size_t end = byte_position(text, kShownCharacters);
  return std::string(text.substr(0, end)) + (end < text.size() ? "..." : "");
}

std::string quote_short(std::string_view text) {
  const std::size_t end = byte_position(text, kShownCharacters);
  return quote(text.substr(0, end)) + (end < text.size() ? "..." : "");
}

}  // namespace tern::text::jinja
