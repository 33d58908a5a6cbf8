// Numbers and texts brought into the form that a format asks for.
#include "text/chat_template/format_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "text/chat_template/characters.h"
#include "text/chat_template/operators.h"
#include "text/chat_template/print.h"
#include "text/chat_template/text_functions.h"

namespace tern::text::jinja {
namespace {

std::string group_digits(std::string digits) {
  const std::size_t whole = std::min(digits.find('.'), digits.size());
  for (std::size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string in_base(std::uint64_t value, unsigned base, bool upper) {
  std::array<char, 65> buffer;
  char* at = buffer.data() + buffer.size();
  do {
    *--at = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
    value /= base;
  } while (value != 0);
  return {at, static_cast<std::size_t>(buffer.data() + buffer.size() - at)};
}

std::string real_digits(double value, const Spec& spec) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return "inf";
  const char type = static_cast<char>(spec.type | 0x20);
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  const auto form = type == 'e'   ? std::chars_format::scientific
                    : type == 'g' ? std::chars_format::general
                                  : std::chars_format::fixed;
  std::array<char, 2048> buffer;  // 309 digits, a point, kMaxFormatPrecision places
  const double scaled = type == '%' ? value * 100 : value;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), scaled, form,
                                 type == 'g' && precision == 0 ? 1 : precision)
                       .ptr;
  std::string digits(buffer.data(), end);
  return type == '%' ? digits + "%" : digits;
}

// Digits without a sign, and the sign in front of them.
struct NumberText {
  std::string prefix;
  std::string digits;
};

NumberText number_text(const Value& value, const Spec& spec) {
  NumberText out;
  const char type = spec.type;
  const bool negative = value.is(Kind::kFloat)    ? std::signbit(value.as_real())
                        : value.is(Kind::kBigInt) ? value.text().front() == '-'
                                                  : value.as_integer() < 0;
  out.prefix = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const bool integral = !value.is(Kind::kFloat);
  if (integral &&
      (type == 0 || std::string_view("dinuxXob").find(type) != std::string_view::npos)) {
    if (value.is(Kind::kBigInt)) {
      out.digits = value.text().substr(negative ? 1 : 0);
    } else {
      const auto bits = static_cast<std::uint64_t>(value.as_integer());
      const std::uint64_t magnitude = negative ? std::uint64_t{0} - bits : bits;
      const unsigned base = type == 'x' || type == 'X' ? 16
                            : type == 'o'              ? 8
                            : type == 'b'              ? 2
                                                       : 10;
      out.digits = in_base(magnitude, base, type == 'X');
      if (spec.alternate && base != 10) out.prefix += std::string("0") + type;
    }
  } else {
    Spec real = spec;
    if (type == 0) real.type = 'g';
    const double magnitude = std::fabs(to_real(value));
    out.digits =
        type == 0 && spec.precision < 0 ? format_real(magnitude) : real_digits(magnitude, real);
  }
  if (std::string_view("EGF").find(type) != std::string_view::npos && type != 0) {
    std::transform(out.digits.begin(), out.digits.end(), out.digits.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  }
  if (spec.grouped) out.digits = group_digits(std::move(out.digits));
  return out;
}

void pad(TextBuilder& out, std::string_view fill, std::size_t count) {
  out.append(repeat_fill(fill, count));
}

}  // namespace

std::size_t read_size(std::string_view text, std::size_t& at, std::size_t limit) {
  std::size_t value = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    value = value * 10 + static_cast<std::size_t>(text[at++] - '0');
    if (value > limit) raise(FaultKind::kValue, "too many decimal digits in format string");
  }
  return value;
}

void append_number(TextBuilder& out, const Value& value, const Spec& spec) {
  const NumberText text = number_text(value, spec);
  const std::size_t length = text.prefix.size() + text.digits.size();
  const std::size_t space = spec.width > length ? spec.width - length : 0;
  const char align = spec.align == 0 ? '>' : spec.align;
  const std::size_t left = align == '>' ? space : align == '^' ? space / 2 : 0;
  pad(out, spec.fill, left);
  out.append(text.prefix);
  if (align == '=') pad(out, spec.fill, space);
  out.append(text.digits);
  if (align == '<' || align == '^') pad(out, spec.fill, space - left);
}

void append_text(TextBuilder& out, const Value& text, const Spec& spec) {
  const StringData& data = text.string();
  std::size_t end = data.text.size();
  std::size_t length = data.length;
  if (spec.precision >= 0 && static_cast<std::size_t>(spec.precision) < length) {
    length = static_cast<std::size_t>(spec.precision);
    end = byte_position(data.text, length);
  }
  const std::size_t space = spec.width > length ? spec.width - length : 0;
  const std::size_t left = spec.align == '>' ? space : spec.align == '^' ? space / 2 : 0;
  pad(out, spec.fill, left);
  out.append(data, 0, end);
  pad(out, spec.fill, space - left);
}

Value repr_text(const Value& value, Budget* budget) {
  TextBuilder out(budget);
  append_repr(out, value);
  return out.finish();
}

bool is_number(const Value& value) {
  return value.is_integer() || value.is(Kind::kFloat) || value.is(Kind::kBigInt);
}

}  // namespace tern::text::jinja
