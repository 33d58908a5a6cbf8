// Cuts a template into tokens, with the white space rules of chat templates.
#include "text/chat_template/lexer.h"

#include <algorithm>
#include <array>

#include "text/chat_template/characters.h"

namespace tern::text::jinja {
namespace {

constexpr auto kNpos = std::string_view::npos;

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

bool is_hex_char(char c) {
  return is_digit_char(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(TokenKind::kEnd, at_, at_);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_at(std::size_t at, const std::string& text) const {
    const auto newlines =
        std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    throw TemplateFault(FaultKind::kSyntax, text, static_cast<int>(newlines) + 1,
                        column_of(source_, source_.substr(at, 0)));
  }

  void add(TokenKind kind, std::size_t begin, std::size_t end) {
    while (counted_ < begin) line_ += source_[counted_++] == '\n' ? 1 : 0;
    tokens_.push_back({kind, source_.substr(begin, end - begin), line_});
  }

  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool starts(std::string_view text) const {
    return source_.substr(at_).starts_with(text);
  }
  void skip_space() {
    while (at_ < source_.size()) {
      const CodePoint point = code_point_at(source_, at_);
      if (!is_space(point.code)) return;
      at_ += point.length;
    }
  }

  // Template text up to the next tag, then the tag.
  void root() {
    const std::size_t begin = at_;
    std::size_t tag = begin;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == kNpos || tag + 1 == source_.size()) {
        at_ = source_.size();
        add_data(begin, at_);
        return;
      }
      const char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    }
    const char kind = source_[tag + 1];
    at_ = tag + 2;
    char sign = 0;
    if (peek() == '-' || peek() == '+') sign = source_[at_++];
    add_data(begin, stripped_end(begin, tag, sign, kind != '{'));
    if (kind == '#') {
      comment(tag);
    } else if (kind == '{') {
      add(TokenKind::kVariableBegin, tag, at_);
      inside(tag, false);
    } else if (!raw(tag)) {
      add(TokenKind::kBlockBegin, tag, at_);
      inside(tag, true);
    }
  }

  void add_data(std::size_t begin, std::size_t end) {
    if (begin < end) add(TokenKind::kData, begin, end);
  }

  // Where the text before a tag ends: {%- cuts all white space, a plain block cuts what stands
  // between the start of the line and the tag.
  [[nodiscard]] std::size_t stripped_end(std::size_t begin, std::size_t end, char sign,
                                         bool is_block) const {
    const std::string_view text = source_.substr(begin, end - begin);
    if (sign == '-') return begin + trim_right(text).size();
    if (sign == '+' || !is_block) return end;
    const std::size_t newline = text.rfind('\n');
    if (newline == kNpos && !line_starting_) return end;
    const std::size_t line = newline == kNpos ? 0 : newline + 1;
    return trim(text.substr(line)).empty() ? begin + line : end;
  }

  // Moves behind an end tag that was found at at_: -%} takes white space along, %} one line end.
  void after_end(char sign, bool trims) {
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && trims && peek() == '\n') {
      ++at_;
    }
    line_starting_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  void comment(std::size_t tag) {
    const std::size_t end = source_.find("#}", at_);
    if (end == kNpos) fail_at(tag, "Missing end of comment tag");
    const char sign =
        end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+') ? source_[end - 1] : '\0';
    at_ = end + 2;
    after_end(sign, true);
  }

  // {% raw %} ... {% endraw %}; false when the tag at at_ is another one.
  bool raw(std::size_t tag) {
    const std::size_t start = at_;
    std::size_t end = 0;
    char sign = 0;
    if (!match_word("raw", end, sign)) {
      at_ = start;
      return false;
    }
    at_ = end;
    if (sign == '-') skip_space();
    line_starting_ = source_[at_ - 1] == '\n';
    const std::size_t begin = at_;
    for (std::size_t close = begin; (close = source_.find("{%", close)) != kNpos; ++close) {
      at_ = close + 2;
      char begin_sign = 0;
      if (peek() == '-' || peek() == '+') begin_sign = source_[at_++];
      if (!match_word("endraw", end, sign)) continue;
      const std::size_t text_end = stripped_end(begin, close, begin_sign, true);
      at_ = end;
      after_end(sign, true);
      add_data(begin, text_end);
      return true;
    }
    fail_at(tag, "Missing end of raw directive");
  }

  // White space, the word, white space and the end of a block at at_; `end` is behind the %}.
  bool match_word(std::string_view word, std::size_t& end, char& sign) {
    skip_space();
    if (!starts(word)) return false;
    at_ += word.size();
    skip_space();
    sign = 0;
    if ((peek() == '-' || (peek() == '+' && word == "endraw")) && peek(1) == '%') {
      sign = source_[at_++];
    }
    if (!starts("%}")) return false;
    end = at_ + 2;
    return true;
  }

  // The tokens of one tag.
  void inside(std::size_t tag, bool is_block) {
    brackets_.clear();
    const std::string_view closing = is_block ? "%}" : "}}";
    while (true) {
      skip_space();
      if (at_ >= source_.size()) {
        fail_at(tag, is_block ? "unexpected end of template, expected '%}'"
                              : "unexpected end of template, expected '}}'");
      }
      if (brackets_.empty() && end_tag(closing, is_block)) return;
      token();
    }
  }

  bool end_tag(std::string_view closing, bool is_block) {
    char sign = 0;
    if (peek() == '-' || (peek() == '+' && is_block)) sign = peek();
    if (!source_.substr(at_ + (sign != 0 ? 1 : 0)).starts_with(closing)) return false;
    const std::size_t begin = at_;
    at_ += closing.size() + (sign != 0 ? 1 : 0);
    add(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, begin, at_);
    after_end(sign, is_block);
    return true;
  }

  void token() {
    const char c = source_[at_];
    const CodePoint point = code_point_at(source_, at_);
    if (is_digit_char(c)) {
      number();
    } else if (is_word(point.code)) {
      const std::size_t begin = at_;
      while (at_ < source_.size()) {
        const CodePoint next = code_point_at(source_, at_);
        if (!is_word(next.code)) break;
        at_ += next.length;
      }
      add(TokenKind::kName, begin, at_);
    } else if (c == '\'' || c == '"') {
      literal(c);
    } else {
      op();
    }
  }

  // Digits with single underscores between them; false when there is none.
  bool digits(bool (*accepts)(char)) {
    const std::size_t begin = at_;
    while (accepts(peek()) || (peek() == '_' && at_ > begin && accepts(peek(1)))) ++at_;
    return at_ > begin;
  }

  void number() {
    const std::size_t begin = at_;
    const char base = static_cast<char>(peek(1) | 0x20);
    if (peek() == '0' && (base == 'x' || base == 'o' || base == 'b')) {
      auto* const accepts = base == 'x'   ? is_hex_char
                            : base == 'o' ? +[](char c) { return c >= '0' && c <= '7'; }
                                          : +[](char c) { return c == '0' || c == '1'; };
      if (accepts(peek(2)) || (peek(2) == '_' && accepts(peek(3)))) {
        at_ += peek(2) == '_' ? 3 : 2;
        (void)digits(accepts);
        return add(TokenKind::kInteger, begin, at_);
      }
    }
    (void)digits(is_digit_char);
    const bool after_dot = begin > 0 && source_[begin - 1] == '.';  // x.1.2 is no float
    const std::size_t whole = at_;
    bool real = false;
    if (!after_dot && peek() == '.' && is_digit_char(peek(1))) {
      ++at_;
      real = digits(is_digit_char);
    }
    if (!after_dot && (peek() == 'e' || peek() == 'E')) {
      const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if (is_digit_char(peek(1 + sign))) {
        at_ += 1 + sign;
        real = digits(is_digit_char);
      }
    }
    if (real) return add(TokenKind::kFloat, begin, at_);
    at_ = whole;
    // An integer does not begin with 0 unless it is 0: "012" is two tokens.
    if (source_[begin] == '0') {
      at_ = begin;
      while (peek() == '0' || (peek() == '_' && peek(1) == '0')) ++at_;
    }
    add(TokenKind::kInteger, begin, at_);
  }

  void literal(char quote_mark) {
    const std::size_t begin = at_++;
    while (at_ < source_.size() && source_[at_] != quote_mark) at_ += source_[at_] == '\\' ? 2 : 1;
    if (at_ >= source_.size()) fail_at(begin, "a string is not closed");
    ++at_;
    add(TokenKind::kString, begin, at_);
  }

  void op() {
    constexpr std::array<std::string_view, 6> kLong = {"//", "**", "==", "!=", ">=", "<="};
    std::size_t length = 0;
    for (const std::string_view two : kLong) length = starts(two) ? 2 : length;
    const char c = source_[at_];
    if (length == 0 && std::string_view("+-/*%~[](){}><=.:|,;").find(c) != kNpos) length = 1;
    if (length == 0) {
      const CodePoint point = code_point_at(source_, at_);
      fail_at(at_, fmt::format("unexpected char '{}'", source_.substr(at_, point.length)));
    }
    if (c == '(' || c == '[' || c == '{') {
      brackets_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty()) fail_at(at_, fmt::format("unexpected '{}'", c));
      if (brackets_.back() != c) {
        fail_at(at_, fmt::format("unexpected '{}', expected '{}'", c, brackets_.back()));
      }
      brackets_.pop_back();
    }
    add(TokenKind::kOperator, at_, at_ + length);
    at_ += length;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;  // lines are counted up to here
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<char> brackets_;  // closing ones that are awaited
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_source(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

int column_of(std::string_view source, std::string_view token) {
  const auto offset = static_cast<std::size_t>(token.data() - source.data());
  const std::string_view before = source.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  return static_cast<int>(count_code_points(before.substr(newline == kNpos ? 0 : newline + 1))) + 1;
}

}  // namespace tern::text::jinja
