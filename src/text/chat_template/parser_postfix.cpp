// What follows a value in an expression: attributes, items, slices, calls, filters and tests.
#include "text/chat_template/parser.h"

namespace tern::text::jinja {
namespace {

ExprPtr boxed(Expr expr) { return std::make_unique<Expr>(std::move(expr)); }

}  // namespace

// The expression as a chain that can grow.
Postfix& Parser::as_postfix(Expr& expr) {
  if (auto* chain = std::get_if<Postfix>(&expr.node)) return *chain;
  const int line = expr.line;
  ExprPtr subject = boxed(std::move(expr));
  expr = {line, Postfix{std::move(subject), {}}};
  return std::get<Postfix>(expr.node);
}

void Parser::parse_postfix(Expr& expr) {
  while (true) {
    const int line = current().line;
    if (at_op(".") || at_op("[")) {
      PostfixOp op = parse_subscript();
      as_postfix(expr).ops.push_back(std::move(op));
    } else if (at_op("(")) {
      CallArguments arguments = parse_arguments();
      as_postfix(expr).ops.push_back({line, CallOp{std::move(arguments)}});
    } else {
      return;
    }
  }
}

void Parser::parse_filters(Expr& expr) {
  while (true) {
    const int line = current().line;
    if (skip_op("|")) {
      PostfixOp op = parse_filter();
      as_postfix(expr).ops.push_back(std::move(op));
    } else if (skip_name("is")) {
      PostfixOp op = parse_test();
      as_postfix(expr).ops.push_back(std::move(op));
    } else if (at_op("(")) {
      CallArguments arguments = parse_arguments();
      as_postfix(expr).ops.push_back({line, CallOp{std::move(arguments)}});
    } else {
      return;
    }
  }
}

PostfixOp Parser::parse_subscript() {
  const int line = current().line;
  if (skip_op(".")) {
    const Token& token = take();
    if (token.kind == TokenKind::kName) return {line, AttributeOp{std::string(token.text)}};
    if (token.kind != TokenKind::kInteger) fail_at(token, "expected name or number");
    --at_;
    return {line, ItemOp{boxed(parse_number())}};
  }
  expect_op("[");
  const Nested nested(*this);
  std::vector<Expr> keys;
  bool is_slice = false;
  SliceOp slice;
  while (!at_op("]")) {
    if (!keys.empty() || is_slice) {
      if (is_slice) fail("a slice among several keys is not part of the template language here");
      expect_op(",");
      if (at_op("]")) break;
    }
    ExprPtr start = parse_slice_part();
    if (!at_op(":")) {
      if (start == nullptr) fail(fmt::format("unexpected {}", describe(current())));
      keys.push_back(std::move(*start));
      continue;
    }
    if (!keys.empty()) fail("a slice among several keys is not part of the template language here");
    is_slice = true;
    slice.start = std::move(start);
    expect_op(":");
    slice.stop = parse_slice_part();
    if (skip_op(":")) slice.step = parse_slice_part();
  }
  expect_op("]");
  if (is_slice) return {line, std::move(slice)};
  if (keys.size() == 1) return {line, ItemOp{boxed(std::move(keys.front()))}};
  return {line, ItemOp{boxed({line, Sequence{true, std::move(keys)}})}};
}

// Null when there is nothing between the colons.
ExprPtr Parser::parse_slice_part() {
  if (at_op(":") || at_op("]") || at_op(",")) return nullptr;
  return boxed(parse_expression());
}

PostfixOp Parser::parse_filter() {
  const Token& token = current();
  std::string name = expect_name();
  while (skip_op(".")) name += "." + expect_name();
  FilterOp filter{name, find_filter(name), {}};
  if (at_op("(")) filter.arguments = parse_arguments();
  if (filter.row == nullptr) unknown_.push_back({token, "filter", false});
  return {token.line, std::move(filter)};
}

void Parser::parse_filter_chain(Postfix& chain, bool starts_inline) {
  while (starts_inline || skip_op("|")) {
    starts_inline = false;
    chain.ops.push_back(parse_filter());
  }
}

PostfixOp Parser::parse_test() {
  const Nested nested(*this);
  const bool negated = skip_name("not");
  const Token& token = current();
  std::string name = expect_name();
  while (skip_op(".")) name += "." + expect_name();
  TestOp test{name, find_test(name), negated, {}};
  if (at_op("(")) {
    test.arguments = parse_arguments();
  } else {
    const Token& next = current();
    const bool is_value =
        next.kind == TokenKind::kString || next.kind == TokenKind::kInteger ||
        next.kind == TokenKind::kFloat || at_op("[") || at_op("{") ||
        (next.kind == TokenKind::kName && !at_name("else") && !at_name("or") && !at_name("and"));
    if (is_value) {
      if (at_name("is")) fail("You cannot chain multiple tests with is");
      Expr argument = parse_primary();
      parse_postfix(argument);
      test.arguments.positional.push_back(std::move(argument));
    }
  }
  if (test.row == nullptr) unknown_.push_back({token, "test", false});
  return {token.line, std::move(test)};
}

CallArguments Parser::parse_arguments() {
  expect_op("(");
  const Nested nested(*this);
  CallArguments arguments;
  bool first = true;
  while (!at_op(")")) {
    if (!first) {
      expect_op(",");
      if (at_op(")")) break;
    }
    first = false;
    if (arguments.positional.size() + arguments.named.size() >= kMaxArguments) {
      fail(fmt::format("a call has more than {} arguments", kMaxArguments));
    }
    if (skip_op("*")) {
      if (arguments.star || arguments.double_star)
        fail("invalid syntax for function call expression");
      arguments.star = boxed(parse_expression());
    } else if (skip_op("**")) {
      if (arguments.double_star) fail("invalid syntax for function call expression");
      arguments.double_star = boxed(parse_expression());
    } else if (current().kind == TokenKind::kName && ahead().kind == TokenKind::kOperator &&
               ahead().text == "=") {
      if (arguments.double_star) fail("invalid syntax for function call expression");
      const std::string_view name = take().text;
      for (const std::string& other : arguments.names) {
        if (other == name) fail(fmt::format("keyword argument repeated: {}", name));
      }
      arguments.names.emplace_back(name);
      take();
      arguments.named.push_back(parse_expression());
    } else {
      if (arguments.star || arguments.double_star || !arguments.named.empty()) {
        fail("invalid syntax for function call expression");
      }
      arguments.positional.push_back(parse_expression());
    }
  }
  expect_op(")");
  return arguments;
}

}  // namespace tern::text::jinja
