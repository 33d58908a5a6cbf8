// The arithmetic operators of the template language. Integers have 64 bits and never wrap.
#pragma once

#include "text/chat_template/value.h"

namespace tern::text::jinja {

enum class ArithmeticOp : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
};

// Numbers, text + text, list + list, text * integer, list * integer, text % values.
[[nodiscard]] Value arithmetic(ArithmeticOp op, const Value& a, const Value& b, Budget* budget);
[[nodiscard]] Value negate(const Value& value, Budget* budget);
[[nodiscard]] Value absolute(const Value& value, Budget* budget);
// The float that a number is; a TypeError for what is no number.
[[nodiscard]] double to_real(const Value& value);
// An integer within [min, max] as arguments of methods need it; a TypeError for other kinds.
[[nodiscard]] std::int64_t to_index(const Value& value);

}  // namespace tern::text::jinja
