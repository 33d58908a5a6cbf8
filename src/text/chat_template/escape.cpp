// HTML escaping, as the filters escape and safe need it.
#include "text/chat_template/escape.h"

#include "text/chat_template/print.h"

namespace tern::text::jinja {
namespace {

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&#34;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

void append_escaped(TextBuilder& out, const StringData& text) {
  if (text.markup) return out.append(text);
  if (out.budget() != nullptr) out.budget()->search(text.text.size());
  OriginCursor origin(text);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.text.size(); ++i) {
    const std::string_view replacement = entity(text.text[i]);
    if (replacement.empty()) continue;
    out.append(text, begin, i);
    out.append(replacement, origin.at(i));
    begin = i + 1;
  }
  out.append(text, begin, text.text.size());
}

Value escape(const Value& value, Budget* budget) {
  TextBuilder out(budget);
  append_escaped(out, to_text(value, budget).string());
  return out.finish(true);
}

}  // namespace tern::text::jinja
