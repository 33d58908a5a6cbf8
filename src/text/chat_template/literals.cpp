// String literals of templates: Python's escapes.
#include "text/chat_template/characters.h"
#include "text/chat_template/lexer.h"

namespace tern::text::jinja {
namespace {

class Unescaper {
 public:
  Unescaper(const Token& literal, std::string_view source)
      : literal_(literal),
        source_(source),
        body_(literal.text.substr(1, literal.text.size() - 2)) {}

  std::string run() {
    while (at_ < body_.size()) {
      const std::size_t backslash = std::min(body_.find('\\', at_), body_.size());
      out_.append(body_.substr(at_, backslash - at_));
      at_ = backslash;
      if (at_ < body_.size()) escape();
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw TemplateFault(FaultKind::kSyntax, text, literal_.line, column_of(source_, literal_.text));
  }

  void escape() {
    const CodePoint next = code_point_at(body_, at_ + 1);  // the lexer saw that there is one
    at_ += 1 + std::size_t{next.length};
    switch (next.code) {
      case '\n':
        return;
      case '\\':
      case '\'':
      case '"':
        return append_utf8(out_, next.code);
      case 'a':
        return append_utf8(out_, 7);
      case 'b':
        return append_utf8(out_, 8);
      case 'f':
        return append_utf8(out_, 12);
      case 'n':
        return append_utf8(out_, 10);
      case 'r':
        return append_utf8(out_, 13);
      case 't':
        return append_utf8(out_, 9);
      case 'v':
        return append_utf8(out_, 11);
      case 'x':
        return append_code(hex(2));
      case 'u':
        return append_code(hex(4));
      case 'U':
        return append_code(hex(8));
      case 'N':
        return fail("the escape \\N{...} is not part of the template language here");
      default:
        break;
    }
    if (next.code >= '0' && next.code <= '7') return octal(next.code - '0');
    out_ += '\\';
    if (next.code < 0x80) return append_utf8(out_, next.code);
    // The reference reads literals as ASCII with other characters spelled out, and the backslash
    // in front of such a spelling escapes it.
    const auto code = static_cast<std::uint32_t>(next.code);
    out_ += code < 0x100     ? fmt::format("x{:02x}", code)
            : code < 0x10000 ? fmt::format("u{:04x}", code)
                             : fmt::format("U{:08x}", code);
  }

  std::uint32_t hex(std::size_t digits) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      const char c = at_ < body_.size() ? body_[at_] : '\0';
      std::uint32_t digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<std::uint32_t>(c - '0');
      } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
        digit = static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
      } else {
        fail("a string has an escape with too few hexadecimal digits");
      }
      value = value << 4 | digit;
    }
    return value;
  }

  void octal(std::uint32_t value) {
    for (int i = 0; i < 2 && at_ < body_.size() && body_[at_] >= '0' && body_[at_] <= '7'; ++i) {
      value = value * 8 + static_cast<std::uint32_t>(body_[at_++] - '0');
    }
    append_code(value);
  }

  void append_code(std::uint32_t code) {
    // Two halves of a surrogate pair make one character; one half alone is no text.
    if (code >= 0xD800 && code < 0xDC00 && body_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const std::uint32_t low = hex(4);
      if (low >= 0xDC00 && low < 0xE000) {
        return append_utf8(out_, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
      }
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      fail("a string has an escape that is no Unicode character");
    }
    append_utf8(out_, code);
  }

  const Token& literal_;
  std::string_view source_;
  std::string_view body_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string unescape(const Token& literal, std::string_view source) {
  return Unescaper(literal, source).run();
}

}  // namespace tern::text::jinja
