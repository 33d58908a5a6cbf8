// The tests of the template language: x is name.
#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/native.h"
#include "text/chat_template/operators.h"
#include "text/chat_template/print.h"

namespace tern::text::jinja {
namespace {

template <Kind kind>
Value is_kind(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::boolean(subject.is(kind));
}

Value remainder_is(Runtime& runtime, const Value& subject, const Value& divisor,
                   std::int64_t wanted) {
  const Value rest = arithmetic(ArithmeticOp::kModulo, subject, divisor, &runtime.budget);
  return Value::boolean(equals(rest, Value::integer(wanted), &runtime.budget));
}

Value is_callable(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  switch (subject.kind()) {
    case Kind::kUndefined:  // has a __call__, which fails
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kLoop:
    case Kind::kJoiner:
      return Value::boolean(true);
    default:
      return Value::boolean(false);
  }
}

Value is_defined(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::boolean(!subject.is_undefined());
}

Value is_divisible(Runtime& runtime, const Value& subject, const Bound& arguments) {
  return remainder_is(runtime, subject, *arguments[0], 0);
}

Value is_equal(Runtime& runtime, const Value& subject, const Bound& arguments) {
  return Value::boolean(equals(subject, *arguments[0], &runtime.budget));
}

Value is_not_equal(Runtime& runtime, const Value& subject, const Bound& arguments) {
  return Value::boolean(!equals(subject, *arguments[0], &runtime.budget));
}

template <Order order>
Value is_ordered(Runtime& runtime, const Value& subject, const Bound& arguments) {
  return Value::boolean(ordered(order, subject, *arguments[0], &runtime.budget));
}

Value is_escaped(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::boolean(subject.is_string() && subject.string().markup);
}

Value is_even(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  return remainder_is(runtime, subject, Value::integer(2), 0);
}

Value is_odd(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  return remainder_is(runtime, subject, Value::integer(2), 1);
}

template <bool value>
Value is_constant(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::boolean(subject.is(Kind::kBool) && subject.as_bool() == value);
}

Value is_filter(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::boolean(subject.is_string() && find_filter(subject.text()) != nullptr);
}

Value is_test(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::boolean(subject.is_string() && find_test(subject.text()) != nullptr);
}

Value is_in(Runtime& runtime, const Value& subject, const Bound& arguments) {
  return Value::boolean(contains(*arguments[0], subject, &runtime.budget));
}

Value is_integer(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::boolean(subject.is(Kind::kInt) || subject.is(Kind::kBigInt));
}

Value is_iterable_value(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::boolean(is_iterable(subject) || subject.is(Kind::kLoop));
}

// Has letters, and all of them of one case.
template <bool upper>
Value has_case(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  const Value text = to_text(subject, &runtime.budget);
  const std::string_view content = text.text();
  bool any = false;
  runtime.budget.characters(content.size());
  for (std::size_t i = 0; i < content.size();) {
    const CodePoint point = code_point_at(content, i);
    i += point.length;
    const bool wanted = upper ? is_upper(point.code) : is_lower(point.code);
    const bool other = upper ? is_lower(point.code) : is_upper(point.code);
    if (other || is_title(point.code)) return Value::boolean(false);
    any = any || wanted;
  }
  return Value::boolean(any);
}

Value is_number_value(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::boolean(subject.is_integer() || subject.is(Kind::kFloat) ||
                        subject.is(Kind::kBigInt));
}

// Has a length and items: also texts, dictionaries and undefined.
Value is_sequence_value(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::boolean(is_iterable(subject) && !subject.is(Kind::kGenerator) &&
                        !subject.is(Kind::kView));
}

Value is_same(Runtime& /*runtime*/, const Value& subject, const Bound& arguments) {
  const Value& other = *arguments[0];
  if (subject.kind() != other.kind()) return Value::boolean(false);
  switch (subject.kind()) {
    case Kind::kNone:
      return Value::boolean(true);
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return Value::boolean(equals(subject, other, nullptr));
    case Kind::kNamespace:
      return Value::boolean(&subject.space() == &other.space());
    default:
      return Value::boolean(subject.identity() == other.identity());
  }
}

constexpr std::array kTests = {
    NativeRow{"!=", is_not_equal, 1, {"other"}},
    NativeRow{"<", is_ordered<Order::kLess>, 1, {"other"}},
    NativeRow{"<=", is_ordered<Order::kLessEqual>, 1, {"other"}},
    NativeRow{"==", is_equal, 1, {"other"}},
    NativeRow{">", is_ordered<Order::kGreater>, 1, {"other"}},
    NativeRow{">=", is_ordered<Order::kGreaterEqual>, 1, {"other"}},
    NativeRow{"boolean", is_kind<Kind::kBool>, 0, {}},
    NativeRow{"callable", is_callable, 0, {}},
    NativeRow{"defined", is_defined, 0, {}},
    NativeRow{"divisibleby", is_divisible, 1, {"num"}},
    NativeRow{"eq", is_equal, 1, {"other"}},
    NativeRow{"equalto", is_equal, 1, {"other"}},
    NativeRow{"escaped", is_escaped, 0, {}},
    NativeRow{"even", is_even, 0, {}},
    NativeRow{"false", is_constant<false>, 0, {}},
    NativeRow{"filter", is_filter, 0, {}},
    NativeRow{"float", is_kind<Kind::kFloat>, 0, {}},
    NativeRow{"ge", is_ordered<Order::kGreaterEqual>, 1, {"other"}},
    NativeRow{"greaterthan", is_ordered<Order::kGreater>, 1, {"other"}},
    NativeRow{"gt", is_ordered<Order::kGreater>, 1, {"other"}},
    NativeRow{"in", is_in, 1, {"seq"}},
    NativeRow{"integer", is_integer, 0, {}},
    NativeRow{"iterable", is_iterable_value, 0, {}},
    NativeRow{"le", is_ordered<Order::kLessEqual>, 1, {"other"}},
    NativeRow{"lessthan", is_ordered<Order::kLess>, 1, {"other"}},
    NativeRow{"lower", has_case<false>, 0, {}},
    NativeRow{"lt", is_ordered<Order::kLess>, 1, {"other"}},
    NativeRow{"mapping", is_kind<Kind::kDict>, 0, {}},
    NativeRow{"ne", is_not_equal, 1, {"other"}},
    NativeRow{"none", is_kind<Kind::kNone>, 0, {}},
    NativeRow{"number", is_number_value, 0, {}},
    NativeRow{"odd", is_odd, 0, {}},
    NativeRow{"sameas", is_same, 1, {"other"}},
    NativeRow{"sequence", is_sequence_value, 0, {}},
    NativeRow{"string", is_kind<Kind::kString>, 0, {}},
    NativeRow{"test", is_test, 0, {}},
    NativeRow{"true", is_constant<true>, 0, {}},
    NativeRow{"undefined", is_kind<Kind::kUndefined>, 0, {}},
    NativeRow{"upper", has_case<true>, 0, {}},
};
static_assert(is_sorted(kTests));

}  // namespace

const NativeRow* find_test(std::string_view name) { return find_row(kTests, name); }

}  // namespace tern::text::jinja
