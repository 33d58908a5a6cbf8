// The arithmetic operators of the template language. Integers have 64 bits and never wrap.
#include "text/chat_template/operators.h"

#include <algorithm>
#include <cmath>

#include "text/chat_template/compare.h"
#include "text/chat_template/escape.h"
#include "text/chat_template/format.h"
#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {
namespace {

constexpr std::string_view symbol(ArithmeticOp op) {
  switch (op) {
    case ArithmeticOp::kAdd:
      return "+";
    case ArithmeticOp::kSubtract:
      return "-";
    case ArithmeticOp::kMultiply:
      return "*";
    case ArithmeticOp::kDivide:
      return "/";
    case ArithmeticOp::kFloorDivide:
      return "//";
    case ArithmeticOp::kModulo:
      return "%";
    case ArithmeticOp::kPower:
      return "** or pow()";
  }
  return "?";
}

[[noreturn]] void raise_overflow() {
  raise(FaultKind::kOverflow, "the result is an integer beyond 64 bits");
}

[[noreturn]] void raise_zero(std::string_view what) { raise(FaultKind::kZeroDivision, "{}", what); }

[[noreturn]] void raise_operands(ArithmeticOp op, const Value& a, const Value& b) {
  raise(FaultKind::kType, "unsupported operand type(s) for {}: '{}' and '{}'", symbol(op),
        type_name(a), type_name(b));
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) raise_overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) raise_overflow();
  }
  return result;
}

// Quotient rounded down; the remainder has the sign of the divisor.
Value integer_division(bool quotient, std::int64_t a, std::int64_t b) {
  if (b == 0) raise_zero("integer division or modulo by zero");
  if (b == -1) {
    if (!quotient) return Value::integer(0);
    if (a == INT64_MIN) raise_overflow();
    return Value::integer(-a);
  }
  const std::int64_t rest = a % b;
  const bool rounds_up = rest != 0 && (rest < 0) != (b < 0);
  if (quotient) return Value::integer(a / b - (rounds_up ? 1 : 0));
  return Value::integer(rounds_up ? rest + b : rest);
}

Value real_modulo(double a, double b) {
  if (b == 0.0) raise_zero("float modulo");
  double rest = std::fmod(a, b);
  if (rest == 0.0) {
    rest = std::copysign(0.0, b);
  } else if ((rest < 0.0) != (b < 0.0)) {
    rest += b;
  }
  return Value::real(rest);
}

Value real_floor_divide(double a, double b) {
  if (b == 0.0) raise_zero("float floor division by zero");
  const double rest = real_modulo(a, b).as_real();
  const double quotient = (a - rest) / b;
  const double whole = std::floor(quotient);
  return Value::real(quotient - whole > 0.5 ? whole + 1.0 : whole);
}

Value real_power(double a, double b) {
  if (a == 0.0 && b < 0.0) raise_zero("0.0 cannot be raised to a negative power");
  const double result = std::pow(a, b);
  if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
    raise(FaultKind::kType, "a negative number to a fractional power is not real");
  }
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    raise(FaultKind::kOverflow, "the result of ** is too large for a float");
  }
  return Value::real(result);
}

Value integer_arithmetic(ArithmeticOp op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case ArithmeticOp::kAdd:
      if (__builtin_add_overflow(a, b, &result)) raise_overflow();
      return Value::integer(result);
    case ArithmeticOp::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) raise_overflow();
      return Value::integer(result);
    case ArithmeticOp::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) raise_overflow();
      return Value::integer(result);
    case ArithmeticOp::kDivide:
      if (b == 0) raise_zero("division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case ArithmeticOp::kFloorDivide:
      return integer_division(true, a, b);
    case ArithmeticOp::kModulo:
      return integer_division(false, a, b);
    case ArithmeticOp::kPower:
      if (b < 0) return real_power(static_cast<double>(a), static_cast<double>(b));
      return Value::integer(integer_power(a, b));
  }
  raise_overflow();
}

Value real_arithmetic(ArithmeticOp op, double a, double b) {
  switch (op) {
    case ArithmeticOp::kAdd:
      return Value::real(a + b);
    case ArithmeticOp::kSubtract:
      return Value::real(a - b);
    case ArithmeticOp::kMultiply:
      return Value::real(a * b);
    case ArithmeticOp::kDivide:
      if (b == 0.0) raise_zero("float division by zero");
      return Value::real(a / b);
    case ArithmeticOp::kFloorDivide:
      return real_floor_divide(a, b);
    case ArithmeticOp::kModulo:
      return real_modulo(a, b);
    case ArithmeticOp::kPower:
      return real_power(a, b);
  }
  raise_overflow();
}

Value add_text(const Value& a, const Value& b, Budget* budget) {
  if (!b.is_string()) {
    raise(FaultKind::kType, "can only concatenate str (not \"{}\") to str", type_name(b));
  }
  const StringData& left = a.string();
  const StringData& right = b.string();
  if (!left.markup && !right.markup) return join_text(left, right, budget);
  // One side is marked as safe: the other one is escaped.
  TextBuilder out(budget);
  append_escaped(out, left);
  append_escaped(out, right);
  return out.finish(true);
}

Value add_sequences(const Value& a, const Value& b, Budget* budget) {
  if (a.kind() != b.kind()) {
    raise(FaultKind::kType, "can only concatenate {0} (not \"{1}\") to {0}", type_name(a),
          type_name(b));
  }
  const std::size_t count = a.items().size() + b.items().size();
  budget->items(count);
  std::vector<Value> items;
  items.reserve(count);
  items.insert(items.end(), a.items().begin(), a.items().end());
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.is(Kind::kList) ? Value::list(std::move(items), budget)
                           : Value::tuple(std::move(items), budget);
}

Value repeat_text(const StringData& subject, std::size_t count, Budget* budget) {
  TextBuilder out(budget);
  if (subject.text.empty()) return out.finish(subject.markup);
  if (subject.runs.empty() && count <= kMaxStringBytes / subject.text.size()) {
    const std::size_t total = subject.text.size() * count;
    std::string text;
    budget->hold(total);
    text.reserve(total);
    budget->release(total);
    if (count > 0) text = subject.text;
    // Doubled: a short text that is repeated often costs what its bytes cost.
    while (text.size() < total) text.append(text, 0, std::min(text.size(), total - text.size()));
    return make_text(std::move(text), subject.origin, budget, subject.markup);
  }
  for (std::size_t i = 0; i < count; ++i) out.append(subject);
  return out.finish(subject.markup);
}

Value repeat(const Value& subject, std::int64_t times, Budget* budget) {
  const auto count = static_cast<std::size_t>(times < 0 ? 0 : times);
  if (subject.is_string()) return repeat_text(subject.string(), count, budget);
  std::vector<Value> items;
  const std::vector<Value>& once = subject.items();
  if (!once.empty() && count > kMaxLiveBytes / sizeof(Value) / once.size()) {
    raise(FaultKind::kLimit, "the template makes a list of more than {} MiB", kMaxLiveBytes >> 20);
  }
  budget->items(once.size() * count);
  items.reserve(once.size() * count);
  for (std::size_t i = 0; i < count && !once.empty(); ++i) {
    items.insert(items.end(), once.begin(), once.end());
  }
  return subject.is(Kind::kList) ? Value::list(std::move(items), budget)
                                 : Value::tuple(std::move(items), budget);
}

bool can_repeat(const Value& value) { return value.is_string() || value.is_sequence(); }

}  // namespace

Value arithmetic(ArithmeticOp op, const Value& a, const Value& b, Budget* budget) {
  require_defined(a);
  if (op == ArithmeticOp::kModulo && a.is_string()) return percent_format(a, b, budget);
  require_defined(b);
  if (a.is_integer() && b.is_integer()) {
    return integer_arithmetic(op, a.as_integer(), b.as_integer());
  }
  if (a.is(Kind::kBigInt) || b.is(Kind::kBigInt)) {
    const Value& other = a.is(Kind::kBigInt) ? b : a;
    if (other.is_integer() || other.is(Kind::kBigInt)) raise_overflow();
  }
  const bool a_number = a.is_integer() || a.is(Kind::kFloat) || a.is(Kind::kBigInt);
  const bool b_number = b.is_integer() || b.is(Kind::kFloat) || b.is(Kind::kBigInt);
  if (a_number && b_number) return real_arithmetic(op, to_real(a), to_real(b));
  if (op == ArithmeticOp::kAdd) {
    if (a.is_string()) return add_text(a, b, budget);
    if (a.is_sequence()) return add_sequences(a, b, budget);
  }
  if (op == ArithmeticOp::kMultiply) {
    if (can_repeat(a) && b.is_integer()) return repeat(a, b.as_integer(), budget);
    if (can_repeat(b) && a.is_integer()) return repeat(b, a.as_integer(), budget);
    if (can_repeat(a) || can_repeat(b)) {
      raise(FaultKind::kType, "can't multiply sequence by non-int of type '{}'",
            type_name(can_repeat(a) ? b : a));
    }
  }
  raise_operands(op, a, b);
}

Value negate(const Value& value, Budget* budget) {
  require_defined(value);
  if (value.is_integer()) {
    if (value.as_integer() == INT64_MIN) raise_overflow();
    return Value::integer(-value.as_integer());
  }
  if (value.is(Kind::kFloat)) return Value::real(-value.as_real());
  if (value.is(Kind::kBigInt)) {
    const std::string_view digits = value.text();
    if (digits == "9223372036854775808") return Value::integer(INT64_MIN);
    if (digits.front() == '-') return Value::big_integer(std::string(digits.substr(1)), budget);
    return Value::big_integer("-" + std::string(digits), budget);
  }
  raise(FaultKind::kType, "bad operand type for unary -: '{}'", type_name(value));
}

Value absolute(const Value& value, Budget* budget) {
  require_defined(value);
  if (value.is_integer()) {
    return value.as_integer() < 0 ? negate(value, budget) : Value::integer(value.as_integer());
  }
  if (value.is(Kind::kFloat)) return Value::real(std::fabs(value.as_real()));
  if (value.is(Kind::kBigInt)) return value.text().front() == '-' ? negate(value, budget) : value;
  raise(FaultKind::kType, "bad operand type for abs(): '{}'", type_name(value));
}

double to_real(const Value& value) {
  require_defined(value);
  if (value.is(Kind::kFloat)) return value.as_real();
  if (value.is_integer()) return static_cast<double>(value.as_integer());
  if (value.is(Kind::kBigInt)) return std::strtod(std::string(value.text()).c_str(), nullptr);
  raise(FaultKind::kType, "must be real number, not {}", type_name(value));
}

std::int64_t to_index(const Value& value) {
  require_defined(value);
  if (value.is_integer()) return value.as_integer();
  if (value.is(Kind::kBigInt)) raise_overflow();
  raise(FaultKind::kType, "'{}' object cannot be interpreted as an integer", type_name(value));
}

}  // namespace tern::text::jinja
