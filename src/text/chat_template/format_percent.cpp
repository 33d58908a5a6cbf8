// '%s' % values: printf-style formatting.
#include <cmath>

#include "text/chat_template/characters.h"
#include "text/chat_template/format.h"
#include "text/chat_template/format_spec.h"
#include "text/chat_template/operators.h"
#include "text/chat_template/print.h"

namespace tern::text::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(const Value& format, const Value& values, Budget* budget)
      : format_(format.string()), values_(values), budget_(budget), out_(budget) {}

  Value run() {
    const std::string& text = format_.text;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] != '%') {
        ++i;
        continue;
      }
      out_.append(format_, begin, i);
      ++i;
      convert(i);
      begin = i;
    }
    out_.append(format_, begin, text.size());
    const bool unused = values_.is(Kind::kTuple) ? next_ < values_.items().size()
                                                 : next_ == 0 && !named_ && !has_keys();
    if (unused) {
      raise(FaultKind::kType, "not all arguments converted during string formatting");
    }
    return out_.finish(format_.markup);
  }

 private:
  // What could be asked for %(name)s need not be used at all.
  [[nodiscard]] bool has_keys() const {
    return values_.is_dict() || values_.is(Kind::kList) || values_.is(Kind::kRange) ||
           values_.is(Kind::kNamespace) || values_.is_undefined();
  }

  const Value& take() {
    if (values_.is(Kind::kTuple)) {
      if (next_ < values_.items().size()) return values_.items()[next_++];
    } else if (next_++ == 0) {
      return values_;
    }
    raise(FaultKind::kType, "not enough arguments for format string");
  }

  Value named(std::size_t& i) {
    const std::size_t close = format_.text.find(')', i);
    if (close == std::string::npos) raise(FaultKind::kValue, "incomplete format key");
    if (!values_.is_dict()) raise(FaultKind::kType, "format requires a mapping");
    const std::string_view key = std::string_view(format_.text).substr(i + 1, close - i - 1);
    const Value* found = values_.dict().dict.find(key, budget_);
    if (found == nullptr) raise(FaultKind::kValue, "format key {} is missing", quote(key));
    i = close + 1;
    named_ = true;
    return *found;
  }

  void convert(std::size_t& i) {
    const std::string& text = format_.text;
    Value subject;
    if (i < text.size() && text[i] == '(') subject = named(i);
    Spec spec;
    spec.align = '>';
    bool zero = false;
    for (; i < text.size() && std::string_view("-+ #0").find(text[i]) != std::string_view::npos;
         ++i) {
      if (text[i] == '-') spec.align = '<';
      if (text[i] == '+' || (text[i] == ' ' && spec.sign != '+')) spec.sign = text[i];
      if (text[i] == '#') spec.alternate = true;
      if (text[i] == '0') zero = true;
    }
    spec.width = read_size(text, i, kMaxFormatWidth);
    if (i < text.size() && text[i] == '.') {
      spec.precision = static_cast<int>(read_size(text, ++i, kMaxFormatPrecision));
    }
    if (i == text.size()) raise(FaultKind::kValue, "incomplete format");
    spec.type = text[i++];
    if (spec.type == '%') return out_.append("%");
    if (zero && spec.align != '<') {
      spec.align = '=';
      spec.fill = "0";
    }
    if (subject.is_missing()) subject = take();
    append(subject, spec);
  }

  void append(const Value& subject, Spec& spec) {
    switch (spec.type) {
      case 's':
      case 'r':
        spec.align = spec.align == '<' ? '<' : '>';
        spec.fill = " ";
        return append_text(
            out_, spec.type == 's' ? to_text(subject, budget_) : repr_text(subject, budget_), spec);
      case 'c':
        if (!subject.is_string() || subject.string().length != 1) {
          raise(FaultKind::kType, "%c requires a character");
        }
        return append_text(out_, subject, spec);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o': {
        if (!is_number(subject)) raise_number(subject, spec.type);
        Value number = subject;
        if (number.is(Kind::kFloat)) {
          const double whole = std::trunc(number.as_real());
          if (!(std::fabs(whole) < 0x1p63)) raise(FaultKind::kOverflow, "number beyond 64 bits");
          number = Value::integer(static_cast<std::int64_t>(whole));
        }
        return append_number(out_, number, spec);
      }
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!is_number(subject)) raise_number(subject, spec.type);
        return append_number(out_, Value::real(to_real(subject)), spec);
      default:
        raise(FaultKind::kValue, "unsupported format character '{}'",
              std::string_view(&spec.type, is_ascii({&spec.type, 1}) ? 1 : 0));
    }
  }

  [[noreturn]] static void raise_number(const Value& subject, char type) {
    raise(FaultKind::kType, "%{} format: a real number is required, not {}", type,
          type_name(subject));
  }

  const StringData& format_;
  const Value& values_;
  Budget* budget_;
  TextBuilder out_;
  std::size_t next_ = 0;
  bool named_ = false;
};

}  // namespace

Value percent_format(const Value& format, const Value& values, Budget* budget) {
  return PercentFormatter(format, values, budget).run();
}

}  // namespace tern::text::jinja
