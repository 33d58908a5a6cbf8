// str() and repr() of values, letter for letter as Python writes them.
#pragma once

#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {

// str(value): what {{ value }} prints. Undefined is empty.
void append_str(TextBuilder& out, const Value& value);
void append_repr(TextBuilder& out, const Value& value);
// str(value) as a value; texts are returned as they are (a safe text stays safe).
[[nodiscard]] Value to_text(const Value& value, Budget* budget);
// repr of a float: the shortest digits that read back, exponents from 1e16 and below 1e-4.
[[nodiscard]] std::string format_real(double value);
// repr of a text: quotes chosen and escapes made as in Python.
[[nodiscard]] std::string quote(std::string_view text);
// For messages: a text of any length, cut after kShownCharacters with three dots; quoted likewise.
inline constexpr std::size_t kShownCharacters = 80;
[[nodiscard]] std::string shortened(std::string_view text);
[[nodiscard]] std::string quote_short(std::string_view text);

}  // namespace tern::text::jinja
