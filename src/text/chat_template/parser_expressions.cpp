// The expressions of the template language, from the loosest operator to the tightest.
#include <charconv>
#include <cmath>
#include <optional>

#include "text/chat_template/parser.h"
#include "text/chat_template/print.h"

namespace tern::text::jinja {
namespace {

ExprPtr boxed(Expr expr) { return std::make_unique<Expr>(std::move(expr)); }

std::optional<CompareOp> compare_op(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "==") return CompareOp::kEq;
  if (token.text == "!=") return CompareOp::kNe;
  if (token.text == "<") return CompareOp::kLt;
  if (token.text == "<=") return CompareOp::kLe;
  if (token.text == ">") return CompareOp::kGt;
  if (token.text == ">=") return CompareOp::kGe;
  return std::nullopt;
}

std::string without_underscores(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '_') out += c;
  }
  return out;
}

}  // namespace

bool Parser::at_tuple_end(std::string_view end_name) const {
  const TokenKind kind = current().kind;
  return kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd || at_op(")") ||
         (!end_name.empty() && at_name(end_name));
}

// One expression, or several with commas between them.
Expr Parser::parse_tuple(bool with_conditional, bool in_parentheses, std::string_view end_name) {
  const int line = current().line;
  std::vector<Expr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect_op(",");
    if (at_tuple_end(end_name)) break;
    items.push_back(parse_expression(with_conditional));
    if (!at_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items.front());
    if (!in_parentheses) {
      fail(fmt::format("Expected an expression, got {}", describe(current())));
    }
  }
  return {line, Sequence{true, std::move(items)}};
}

Expr Parser::parse_expression(bool with_conditional) {
  const Nested nested(*this);
  if (!with_conditional) return parse_or();
  const int line = current().line;
  const std::size_t first_unknown = unknown_.size();
  Expr result = parse_or();
  bool again = false;
  while (skip_name("if")) {
    // a if b if c nests without a bracket, so it is counted on its own.
    if (again && ++chained_conditionals_ > kMaxParserDepth) fail("too many chained conditions");
    again = true;
    Conditional conditional{boxed(parse_or()), boxed(std::move(result)), nullptr};
    if (skip_name("else")) conditional.no = boxed(parse_expression(true));
    result = {line, std::move(conditional)};
  }
  if (again) defer_unknown(first_unknown);
  return result;
}

Expr Parser::parse_or() {
  const int line = current().line;
  Expr first = parse_and();
  if (!at_name("or")) return first;
  Logic logic{false, {}};
  logic.operands.push_back(std::move(first));
  while (skip_name("or")) logic.operands.push_back(parse_and());
  return {line, std::move(logic)};
}

Expr Parser::parse_and() {
  const int line = current().line;
  Expr first = parse_not();
  if (!at_name("and")) return first;
  Logic logic{true, {}};
  logic.operands.push_back(std::move(first));
  while (skip_name("and")) logic.operands.push_back(parse_not());
  return {line, std::move(logic)};
}

Expr Parser::parse_not() {
  const int line = current().line;
  if (!skip_name("not")) return parse_compare();
  const Nested nested(*this);
  return {line, Unary{UnaryOp::kNot, boxed(parse_not())}};
}

Expr Parser::parse_compare() {
  const int line = current().line;
  Expr first = parse_sum();
  Compare compare{nullptr, {}, {}};
  while (true) {
    if (const auto op = compare_op(current())) {
      take();
      compare.ops.push_back(*op);
    } else if (skip_name("in")) {
      compare.ops.push_back(CompareOp::kIn);
    } else if (at_name("not") && ahead().kind == TokenKind::kName && ahead().text == "in") {
      take();
      take();
      compare.ops.push_back(CompareOp::kNotIn);
    } else {
      break;
    }
    compare.operands.push_back(parse_sum());
  }
  if (compare.ops.empty()) return first;
  compare.first = boxed(std::move(first));
  return {line, std::move(compare)};
}

Expr Parser::parse_sum() {
  const int line = current().line;
  Expr first = parse_concat();
  Arithmetic chain{nullptr, {}, {}};
  while (at_op("+") || at_op("-")) {
    chain.ops.push_back(take().text == "+" ? ArithmeticOp::kAdd : ArithmeticOp::kSubtract);
    chain.operands.push_back(parse_concat());
  }
  if (chain.ops.empty()) return first;
  chain.first = boxed(std::move(first));
  return {line, std::move(chain)};
}

Expr Parser::parse_concat() {
  const int line = current().line;
  Expr first = parse_product();
  if (!at_op("~")) return first;
  Concat concat;
  concat.parts.push_back(std::move(first));
  while (skip_op("~")) concat.parts.push_back(parse_product());
  return {line, std::move(concat)};
}

Expr Parser::parse_product() {
  const int line = current().line;
  Expr first = parse_power();
  Arithmetic chain{nullptr, {}, {}};
  while (at_op("*") || at_op("/") || at_op("//") || at_op("%")) {
    const std::string_view op = take().text;
    chain.ops.push_back(op == "*"    ? ArithmeticOp::kMultiply
                        : op == "/"  ? ArithmeticOp::kDivide
                        : op == "//" ? ArithmeticOp::kFloorDivide
                                     : ArithmeticOp::kModulo);
    chain.operands.push_back(parse_power());
  }
  if (chain.ops.empty()) return first;
  chain.first = boxed(std::move(first));
  return {line, std::move(chain)};
}

// From the left, unlike Python.
Expr Parser::parse_power() {
  const int line = current().line;
  Expr first = parse_unary();
  Arithmetic chain{nullptr, {}, {}};
  while (skip_op("**")) {
    chain.ops.push_back(ArithmeticOp::kPower);
    chain.operands.push_back(parse_unary());
  }
  if (chain.ops.empty()) return first;
  chain.first = boxed(std::move(first));
  return {line, std::move(chain)};
}

Expr Parser::parse_unary(bool with_filters) {
  const int line = current().line;
  Expr expr;
  if (at_op("-") || at_op("+")) {
    const Nested nested(*this);
    const UnaryOp op = take().text == "-" ? UnaryOp::kMinus : UnaryOp::kPlus;
    expr = {line, Unary{op, boxed(parse_unary(false))}};
  } else {
    expr = parse_primary();
  }
  parse_postfix(expr);
  if (with_filters) parse_filters(expr);
  return expr;
}

Expr Parser::parse_primary() {
  const Token& token = current();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::kName: {
      take();
      if (token.text == "true" || token.text == "True")
        return {line, Literal{Value::boolean(true)}};
      if (token.text == "false" || token.text == "False") {
        return {line, Literal{Value::boolean(false)}};
      }
      if (token.text == "none" || token.text == "None") return {line, Literal{Value::none()}};
      return {line, Name{std::string(token.text),
                         Value::undefined(fmt::format("{} is undefined", quote(token.text))),
                         {}}};
    }
    case TokenKind::kString: {
      std::string text;
      while (current().kind == TokenKind::kString) text += unescape(take(), source_);
      template_.literals.push_back(text);
      return {line, Literal{Value::string(std::move(text), Origin::kTemplate)}};
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    default:
      break;
  }
  if (skip_op("(")) {
    Expr inner = parse_tuple(true, true);
    expect_op(")");
    return inner;
  }
  if (skip_op("[")) return parse_list(line);
  if (skip_op("{")) return parse_dict(line);
  if (token.kind == TokenKind::kVariableEnd || token.kind == TokenKind::kBlockEnd) {
    fail(fmt::format("Expected an expression, got {}", describe(token)));
  }
  fail(fmt::format("unexpected {}", describe(token)));
}

Expr Parser::parse_number() {
  const Token& token = take();
  const std::string text = without_underscores(token.text);
  if (token.kind == TokenKind::kFloat) {
    double value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec == std::errc::result_out_of_range) {
      // Too large is infinite and too small is zero, as in Python.
      value = text.find("e-") != std::string::npos || text.find("E-") != std::string::npos
                  ? 0.0
                  : HUGE_VAL;
    }
    return {token.line, Literal{Value::real(value)}};
  }
  std::string_view digits = text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    if (base != 10) digits.remove_prefix(2);
  }
  std::int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (result.ec != std::errc{}) {
    if (base != 10) fail_at(token, "an integer beyond 64 bits");
    if (digits.size() > kMaxIntegerDigits) {
      fail_at(token, fmt::format("an integer of {} digits; at most {} are read", digits.size(),
                                 kMaxIntegerDigits));
    }
    return {token.line, Literal{Value::big_integer(std::string(digits))}};
  }
  return {token.line, Literal{Value::integer(value)}};
}

Expr Parser::parse_list(int line) {
  Sequence list{false, {}};
  while (!at_op("]")) {
    if (!list.items.empty()) expect_op(",");
    if (at_op("]")) break;
    list.items.push_back(parse_expression());
  }
  expect_op("]");
  return {line, std::move(list)};
}

Expr Parser::parse_dict(int line) {
  DictExpr dict;
  while (!at_op("}")) {
    if (!dict.keys.empty()) expect_op(",");
    if (at_op("}")) break;
    dict.keys.push_back(parse_expression());
    expect_op(":");
    dict.values.push_back(parse_expression());
  }
  expect_op("}");
  return {line, std::move(dict)};
}

}  // namespace tern::text::jinja
