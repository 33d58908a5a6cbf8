// Truth, equality and order of values, as Python has them.
#pragma once

#include "text/chat_template/value.h"

namespace tern::text::jinja {

[[nodiscard]] bool truth(const Value& value);
// Never an error for data; the budget (may be null) pays for walking through containers.
[[nodiscard]] bool equals(const Value& a, const Value& b, Budget* budget);
// a < b; a TypeError where the two have no order, an error for undefined values.
[[nodiscard]] bool less(const Value& a, const Value& b, Budget* budget);
// The same for the four operators.
enum class Order : std::uint8_t { kLess, kLessEqual, kGreater, kGreaterEqual };
[[nodiscard]] bool ordered(Order order, const Value& a, const Value& b, Budget* budget);
// `item in container`.
[[nodiscard]] bool contains(const Value& container, const Value& item, Budget* budget);
// Lists and dictionaries cannot be keys.
[[nodiscard]] bool is_hashable(const Value& value);
void require_hashable(const Value& value);
// Fails with the message of an undefined value.
[[noreturn]] void raise_undefined(const Value& value);
inline void require_defined(const Value& value) {
  if (value.is_undefined()) raise_undefined(value);
}

}  // namespace tern::text::jinja
