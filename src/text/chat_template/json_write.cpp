// The filter tojson: json.dumps of Python, letter for letter.
#include <cmath>

#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/json.h"
#include "text/chat_template/merge_sort.h"
#include "text/chat_template/print.h"

namespace tern::text::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(TextBuilder& out, const JsonStyle& style) : out_(out), style_(style) {}

  void write(const Value& value) {
    if (out_.budget() != nullptr) out_.budget()->step();
    switch (value.kind()) {
      case Kind::kNone:
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kFloat:
      case Kind::kBigInt:
        return out_.append(scalar(value));
      case Kind::kString:
        return write_text(value.string());
      case Kind::kList:
      case Kind::kTuple:
        return write_list(value.items());
      case Kind::kDict:
        return write_dict(value.dict().dict);
      default:
        raise(FaultKind::kType, "Object of type {} is not JSON serializable", type_name(value));
    }
  }

 private:
  static std::string scalar(const Value& value) {
    switch (value.kind()) {
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return value.as_bool() ? "true" : "false";
      case Kind::kInt:
        return fmt::format("{}", value.as_integer());
      case Kind::kBigInt:
        return std::string(value.text());
      default:
        break;
    }
    const double real = value.as_real();
    if (std::isnan(real)) return "NaN";
    if (std::isinf(real)) return real < 0 ? "-Infinity" : "Infinity";
    return format_real(real);
  }

  void append_escape(std::uint32_t code, Origin origin) {
    switch (code) {
      case '"':
        return out_.append("\\\"", origin);
      case '\\':
        return out_.append("\\\\", origin);
      case '\n':
        return out_.append("\\n", origin);
      case '\r':
        return out_.append("\\r", origin);
      case '\t':
        return out_.append("\\t", origin);
      case '\b':
        return out_.append("\\b", origin);
      case '\f':
        return out_.append("\\f", origin);
      default:
        break;
    }
    if (out_.budget() != nullptr) out_.budget()->items(16);  // formatting takes its time
    if (code < 0x10000) return out_.append(fmt::format("\\u{:04x}", code), origin);
    const std::uint32_t rest = code - 0x10000;
    out_.append(fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF)),
                origin);
  }

  void write_text(const StringData& text) {
    if (out_.budget() != nullptr) out_.budget()->search(text.text.size());
    out_.append("\"");
    OriginCursor origin(text);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.text.size();) {
      const auto byte = static_cast<unsigned char>(text.text[i]);
      const bool escaped =
          byte < 0x20 || byte == '"' || byte == '\\' || (style_.ensure_ascii && byte >= 0x7F);
      if (!escaped) {
        ++i;
        continue;
      }
      out_.append(text, begin, i);
      const CodePoint point = code_point_at(text.text, i);
      append_escape(static_cast<std::uint32_t>(point.code), origin.at(i));
      i += point.length;
      begin = i;
    }
    out_.append(text, begin, text.text.size());
    out_.append("\"");
  }

  void write_key(const Value& key) {
    switch (key.kind()) {
      case Kind::kString:
        return write_text(key.string());
      case Kind::kNone:
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kFloat:
      case Kind::kBigInt:
        return out_.append("\"" + scalar(key) + "\"");
      default:
        raise(FaultKind::kType, "keys must be str, int, float, bool or None, not {}",
              type_name(key));
    }
  }

  void new_line() {
    if (!style_.indent) return;
    std::string text = "\n";
    if (style_.indent->size() * level_ > kMaxStringBytes) {
      raise(FaultKind::kLimit, "the indentation of tojson is too wide");
    }
    for (std::size_t i = 0; i < level_; ++i) text += *style_.indent;
    out_.append(text);
  }

  void write_list(const std::vector<Value>& items) {
    if (items.empty()) return out_.append("[]");
    out_.append("[");
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      new_line();
      write(items[i]);
    }
    --level_;
    new_line();
    out_.append("]");
  }

  void write_dict(const Dict& dict) {
    if (dict.size() == 0) return out_.append("{}");
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      merge_sort(entries, [&](const Dict::Entry* a, const Dict::Entry* b) {
        return less(a->key, b->key, out_.budget());
      });
    }
    out_.append("{");
    ++level_;
    bool first = true;
    for (const Dict::Entry* entry : entries) {
      if (!first) out_.append(style_.item_separator);
      first = false;
      new_line();
      write_key(entry->key);
      out_.append(style_.key_separator);
      write(entry->value);
    }
    --level_;
    new_line();
    out_.append("}");
  }

  TextBuilder& out_;
  const JsonStyle& style_;
  std::size_t level_ = 0;
};

}  // namespace

void append_json(TextBuilder& out, const Value& value, const JsonStyle& style) {
  JsonWriter(out, style).write(value);
}

}  // namespace tern::text::jinja
