// Truth, equality and order of values, as Python has them.
#include "text/chat_template/compare.h"

#include <algorithm>
#include <cmath>
#include <compare>

#include "text/chat_template/characters.h"
#include "text/chat_template/iterate.h"

namespace tern::text::jinja {
namespace {

bool is_number(const Value& value) {
  return value.is_integer() || value.is(Kind::kFloat) || value.is(Kind::kBigInt);
}

// An integer against a float without rounding the integer.
std::partial_ordering compare_mixed(std::int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= 0x1p63) return std::partial_ordering::less;
  if (b < -0x1p63) return std::partial_ordering::greater;
  const double whole = std::trunc(b);
  const auto integral = static_cast<std::int64_t>(whole);
  if (a != integral)
    return a < integral ? std::partial_ordering::less : std::partial_ordering::greater;
  return 0.0 <=> (b - whole);
}

std::partial_ordering compare_digits(std::string_view a, std::string_view b) {
  const bool a_negative = a.front() == '-';
  if (a_negative != (b.front() == '-')) {
    return a_negative ? std::partial_ordering::less : std::partial_ordering::greater;
  }
  const auto by_size = a.size() != b.size() ? a.size() <=> b.size() : a.compare(b) <=> 0;
  return a_negative ? 0 <=> by_size : by_size;
}

// Numbers beyond 64 bits lie outside of everything that an integer can be.
std::partial_ordering compare_big(const Value& a, const Value& b) {
  if (a.is(Kind::kBigInt) && b.is(Kind::kBigInt)) return compare_digits(a.text(), b.text());
  const bool big_left = a.is(Kind::kBigInt);
  const Value& big = big_left ? a : b;
  const Value& other = big_left ? b : a;
  const bool negative = big.text().front() == '-';
  std::partial_ordering order =
      negative ? std::partial_ordering::less : std::partial_ordering::greater;
  if (other.is(Kind::kFloat)) {
    // The nearest float decides; JSON numbers of this size have no exact meaning elsewhere either.
    order = std::strtod(std::string(big.text()).c_str(), nullptr) <=> other.as_real();
  }
  return big_left ? order : 0 <=> order;
}

std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  if (a.is(Kind::kBigInt) || b.is(Kind::kBigInt)) return compare_big(a, b);
  if (a.is(Kind::kFloat)) {
    if (b.is(Kind::kFloat)) return a.as_real() <=> b.as_real();
    return 0 <=> compare_mixed(b.as_integer(), a.as_real());
  }
  if (b.is(Kind::kFloat)) return compare_mixed(a.as_integer(), b.as_real());
  return a.as_integer() <=> b.as_integer();
}

bool equal_sequences(const std::vector<Value>& a, const std::vector<Value>& b, Budget* budget) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equals(a[i], b[i], budget)) return false;
  }
  return true;
}

bool equal_dicts(const Dict& a, const Dict& b, Budget* budget) {
  if (a.size() != b.size()) return false;
  for (const Dict::Entry& entry : a.entries()) {
    const Value* other = b.find(entry.key, budget);
    if (other == nullptr || !equals(entry.value, *other, budget)) return false;
  }
  return true;
}

bool equal_ranges(const RangeData& a, const RangeData& b) {
  if (a.count != b.count) return false;
  return a.count == 0 || (a.start == b.start && (a.count == 1 || a.step == b.step));
}

constexpr std::string_view symbol(Order order) {
  return order == Order::kLess        ? "<"
         : order == Order::kLessEqual ? "<="
         : order == Order::kGreater   ? ">"
                                      : ">=";
}

bool holds(Order order, std::partial_ordering found) {
  switch (order) {
    case Order::kLess:
      return found < 0;
    case Order::kLessEqual:
      return found <= 0;
    case Order::kGreater:
      return found > 0;
    case Order::kGreaterEqual:
      return found >= 0;
  }
  return false;
}

bool contained_in_view(const ViewData& view, const Value& item, Budget* budget) {
  const Dict& dict = view.dict.dict().dict;
  if (view.view == ViewKind::kKeys) return dict.find(item, budget) != nullptr;
  for (const Dict::Entry& entry : dict.entries()) {
    if (view.view == ViewKind::kValues) {
      if (equals(entry.value, item, budget)) return true;
    } else if (item.is(Kind::kTuple) && item.items().size() == 2 &&
               equals(entry.key, item.items()[0], budget) &&
               equals(entry.value, item.items()[1], budget)) {
      return true;
    }
  }
  return false;
}

bool contained_in_text(const Value& container, const Value& item, Budget* budget) {
  if (!item.is_string()) {
    raise(FaultKind::kType, "'in <string>' requires string as left operand, not {}",
          type_name(item));
  }
  if (budget != nullptr) budget->search(container.text().size() + item.text().size());
  return find_text(container.text(), item.text()) != std::string_view::npos;
}

}  // namespace

void raise_undefined(const Value& value) {
  const auto& undefined = value.as<UndefinedData>();
  throw TemplateFault(undefined.kind, undefined.message);
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.as_integer() != 0;
    case Kind::kFloat:
      return value.as_real() != 0.0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.items().empty();
    case Kind::kDict:
      return value.dict().dict.size() != 0;
    case Kind::kView:
      return value.as<ViewData>().dict.dict().dict.size() != 0;
    case Kind::kRange:
      return value.as<RangeData>().count != 0;
    default:
      return true;
  }
}

bool equals(const Value& a, const Value& b, Budget* budget) {
  if (budget != nullptr) budget->step();
  if (is_number(a) && is_number(b)) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      if (budget != nullptr) budget->bytes(std::min(a.text().size(), b.text().size()));
      return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple:
      return equal_sequences(a.items(), b.items(), budget);
    case Kind::kDict:
      return equal_dicts(a.dict().dict, b.dict().dict, budget);
    case Kind::kRange:
      return equal_ranges(a.as<RangeData>(), b.as<RangeData>());
    case Kind::kNamespace:
      return &a.space() == &b.space();
    default:
      return a.identity() == b.identity();
  }
}

bool less(const Value& a, const Value& b, Budget* budget) {
  return ordered(Order::kLess, a, b, budget);
}

bool ordered(Order order, const Value& a, const Value& b, Budget* budget) {
  if (budget != nullptr) budget->step();
  require_defined(a);
  require_defined(b);
  if (is_number(a) && is_number(b)) return holds(order, compare_numbers(a, b));
  if (a.is_string() && b.is_string()) {
    if (budget != nullptr) budget->bytes(std::min(a.text().size(), b.text().size()));
    // The order of UTF-8 bytes is that of the code points.
    return holds(order, a.text().compare(b.text()) <=> 0);
  }
  if (!a.is_sequence() || a.kind() != b.kind()) {
    raise(FaultKind::kType, "'{}' not supported between instances of '{}' and '{}'", symbol(order),
          type_name(a), type_name(b));
  }
  const std::vector<Value>& left = a.items();
  const std::vector<Value>& right = b.items();
  for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
    if (!equals(left[i], right[i], budget)) return ordered(order, left[i], right[i], budget);
  }
  return holds(order, left.size() <=> right.size());
}

bool contains(const Value& container, const Value& item, Budget* budget) {
  switch (container.kind()) {
    case Kind::kString:
      return contained_in_text(container, item, budget);
    case Kind::kDict:
      return container.dict().dict.find(item, budget) != nullptr;
    case Kind::kView:
      return contained_in_view(container.as<ViewData>(), item, budget);
    case Kind::kList:
    case Kind::kTuple:
      return std::any_of(container.items().begin(), container.items().end(),
                         [&](const Value& value) { return equals(value, item, budget); });
    case Kind::kUndefined:
    case Kind::kRange:
    case Kind::kGenerator: {
      if (container.is_undefined() && container.as<UndefinedData>().kind == FaultKind::kSecurity) {
        raise_undefined(container);
      }
      Iteration walk(container, budget);
      Value value;
      while (walk.next(value)) {
        if (equals(value, item, budget)) return true;
      }
      return false;
    }
    default:
      raise(FaultKind::kType, "argument of type '{}' is not iterable", type_name(container));
  }
}

bool is_hashable(const Value& value) {
  if (value.is(Kind::kList) || value.is(Kind::kDict)) return false;
  if (!value.is(Kind::kTuple)) return true;
  return std::all_of(value.items().begin(), value.items().end(), is_hashable);
}

void require_hashable(const Value& value) {
  if (!is_hashable(value)) raise(FaultKind::kType, "unhashable type: '{}'", type_name(value));
}

}  // namespace tern::text::jinja
