// Filters of numbers, and of texts that hold one.
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/filters.h"
#include "text/chat_template/operators.h"
#include "text/chat_template/text_functions.h"

namespace tern::text::jinja {
namespace {

Value abs_filter(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  return absolute(subject, &runtime.budget);
}

// Digits with single underscores between them, white space around; nothing when it is no number.
std::optional<std::string> clean_number(std::string_view text) {
  text = trim(text);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto is_alnum = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    if (i == 0 || i + 1 == text.size() || !is_alnum(text[i - 1]) || !is_alnum(text[i + 1])) {
      return std::nullopt;
    }
  }
  if (out.empty()) return std::nullopt;
  return out;
}

std::optional<double> parse_real(std::string_view given) {
  const auto cleaned = clean_number(given);
  if (!cleaned) return std::nullopt;
  std::string_view text = *cleaned;
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  if (text.empty() || text.front() == '-' || text.front() == '+') return std::nullopt;
  std::string lower_text = to_lower(text);
  if (lower_text == "inf" || lower_text == "infinity") return negative ? -HUGE_VAL : HUGE_VAL;
  if (lower_text == "nan") return std::nan("");
  if (text.front() != '.' && (text.front() < '0' || text.front() > '9')) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ptr != text.data() + text.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) {
    value = lower_text.find("e-") != std::string::npos ? 0.0 : HUGE_VAL;
  } else if (result.ec != std::errc{}) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

// int(text, base); a number beyond 64 bits keeps its digits, up to as many as Python reads.
std::optional<Value> parse_integer(std::string_view given, std::int64_t base, Budget* budget) {
  const auto cleaned = clean_number(given);
  if (!cleaned || base < 0 || base == 1 || base > 36) return std::nullopt;
  std::string_view text = *cleaned;
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    const std::int64_t named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (named != 0 && (base == 0 || base == named)) {
      base = named;
      text.remove_prefix(2);
    }
  }
  if (base == 0) base = 10;
  if (text.empty() || text.front() == '-' || text.front() == '+') return std::nullopt;
  const std::string digits = (negative ? "-" : "") + std::string(text);
  std::int64_t value = 0;
  const auto result =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (result.ptr != digits.data() + digits.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) {
    if (base != 10) raise(FaultKind::kOverflow, "an integer beyond 64 bits");
    if (text.size() > kMaxIntegerDigits) return std::nullopt;
    return Value::big_integer(digits, budget);
  }
  if (result.ec != std::errc{}) return std::nullopt;
  return Value::integer(value);
}

std::optional<Value> whole_of(double value, Budget* budget) {
  if (!std::isfinite(value)) return std::nullopt;
  const double whole = std::trunc(value);
  if (whole >= 0x1p63 || whole < -0x1p63) {
    return Value::big_integer(fmt::format("{:.0f}", whole), budget);
  }
  return Value::integer(static_cast<std::int64_t>(whole));
}

Value int_filter(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const Value otherwise = arguments[0] != nullptr ? *arguments[0] : Value::integer(0);
  const std::int64_t base = arguments[1] == nullptr ? 10 : to_index(*arguments[1]);
  require_defined(subject);
  std::optional<Value> result;
  if (subject.is_string()) {
    runtime.budget.characters(subject.text().size());
    result = parse_integer(subject.text(), base, &runtime.budget);
    if (!result) {
      if (const auto real = parse_real(subject.text())) {
        result = whole_of(*real, &runtime.budget);
      }
    }
  } else if (subject.is_integer()) {
    result = Value::integer(subject.as_integer());
  } else if (subject.is(Kind::kBigInt)) {
    result = subject;
  } else if (subject.is(Kind::kFloat)) {
    if (std::isinf(subject.as_real())) {
      raise(FaultKind::kOverflow, "cannot convert float infinity to integer");
    }
    result = whole_of(subject.as_real(), &runtime.budget);
  }
  return result.value_or(otherwise);
}

Value float_filter(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const Value otherwise = arguments[0] != nullptr ? *arguments[0] : Value::real(0.0);
  require_defined(subject);
  if (subject.is_string()) {
    runtime.budget.characters(subject.text().size());
    const auto value = parse_real(subject.text());
    return value ? Value::real(*value) : otherwise;
  }
  const bool number = subject.is_integer() || subject.is(Kind::kFloat) || subject.is(Kind::kBigInt);
  return number ? Value::real(to_real(subject)) : otherwise;
}

// Half to even at that many decimal places, from the exact value of the float.
double round_common(double value, std::int64_t places) {
  if (!std::isfinite(value) || places > 323) return value;
  if (places < -308) return 0.0 * value;
  if (places >= 0) {
    const std::string text = fmt::format("{:.{}f}", value, places);
    double result = 0;
    std::from_chars(text.data(), text.data() + text.size(), result);
    return result;
  }
  const double scale = std::pow(10.0, static_cast<double>(-places));
  return std::nearbyint(value / scale) * scale;
}

Value round_filter(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const std::int64_t places = arguments[0] == nullptr ? 0 : to_index(*arguments[0]);
  std::string_view method = "common";
  if (arguments[1] != nullptr) method = text_argument(*arguments[1], "round").text;
  if (method != "common" && method != "ceil" && method != "floor") {
    raise(FaultKind::kFilterArgument, "method must be common, ceil or floor");
  }
  if (method == "common") {
    if (subject.is_integer() && places >= 0) return Value::integer(subject.as_integer());
    const double rounded = round_common(to_real(subject), places);
    if (subject.is_integer()) return whole_of(rounded, &runtime.budget).value_or(subject);
    return Value::real(rounded);
  }
  const Value scale =
      arithmetic(ArithmeticOp::kPower, Value::integer(10), Value::integer(places), &runtime.budget);
  const double scaled =
      to_real(arithmetic(ArithmeticOp::kMultiply, subject, scale, &runtime.budget));
  const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  return arithmetic(ArithmeticOp::kDivide, Value::real(whole), scale, &runtime.budget);
}

constexpr std::array kFilters = {
    NativeRow{"abs", abs_filter, 0, {}},
    NativeRow{"float", float_filter, 0, {"default"}},
    NativeRow{"int", int_filter, 0, {"default", "base"}},
    NativeRow{"round", round_filter, 0, {"precision", "method"}},
};
static_assert(is_sorted(kFilters));

}  // namespace

std::span<const NativeRow> number_filters() { return kFilters; }

}  // namespace tern::text::jinja
