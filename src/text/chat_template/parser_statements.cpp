// The statements of the template language: {% ... %}.
#include <algorithm>
#include <array>

#include "text/chat_template/characters.h"
#include "text/chat_template/parser.h"

namespace tern::text::jinja {
namespace {

constexpr std::array<std::string_view, 6> kOutside = {"include", "import", "from",
                                                      "extends", "block",  "autoescape"};
constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none",
                                                        "True", "False", "None"};

template <std::size_t n>
bool is_one_of(std::string_view text, const std::array<std::string_view, n>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool ends_block(std::string_view name) {
  return name.starts_with("end") || name == "else" || name == "elif";
}

}  // namespace

// Statements up to a block whose name is in `ends`; stands on that name then. Without ends: all.
Body Parser::parse_body(std::initializer_list<std::string_view> ends) {
  const Nested nested(*this);
  Body body;
  while (true) {
    switch (current().kind) {
      case TokenKind::kEnd: {
        if (ends.size() == 0) return body;
        std::string expected;
        for (const std::string_view end : ends) {
          expected += (expected.empty() ? "'" : " or '") + std::string(end) + "'";
        }
        fail(
            fmt::format("Unexpected end of template. Looking for the following tags: {}. The "
                        "innermost block that needs to be closed is '{}'.",
                        expected, open_blocks_.back()));
      }
      case TokenKind::kData:
        parse_text(body);
        break;
      case TokenKind::kVariableBegin:
        parse_output(body);
        break;
      default: {
        take();  // the begin of a block: the lexer gives nothing else here
        if (current().kind == TokenKind::kName &&
            std::find(ends.begin(), ends.end(), current().text) != ends.end()) {
          return body;
        }
        body.push_back(parse_statement());
      }
    }
  }
}

void Parser::parse_text(Body& body) {
  const Token& token = take();
  template_.literals.emplace_back(token.text);
  body.push_back({token.line, TextStmt{Value::string(std::string(token.text), Origin::kTemplate)}});
}

void Parser::parse_output(Body& body) {
  const int line = take().line;
  OutputStmt output;
  output.expressions.push_back(parse_tuple());
  if (current().kind != TokenKind::kVariableEnd) {
    fail(fmt::format("expected token 'end of print statement', got {}", describe(current())));
  }
  take();
  body.push_back({line, std::move(output)});
}

Stmt Parser::parse_statement() {
  if (current().kind != TokenKind::kName) fail("tag name expected");
  const Token& token = take();
  const std::string_view name = token.text;
  const int line = token.line;
  if (name == "set") return parse_set(line);
  if (name == "break" || name == "continue") return parse_loop_control(line, name == "break");
  if (name == "print") return parse_print(line);
  open_blocks_.emplace_back(name);
  Stmt statement;
  if (name == "if") {
    statement = parse_if(line);
  } else if (name == "for") {
    statement = parse_for(line);
  } else if (name == "macro") {
    statement = parse_macro(line);
  } else if (name == "call") {
    statement = parse_call_block(line);
  } else if (name == "filter") {
    statement = parse_filter_block(line);
  } else if (name == "with") {
    statement = parse_with(line);
  } else if (name == "generation") {
    statement = parse_generation(line);
  } else {
    open_blocks_.pop_back();
    fail_statement(token);
  }
  open_blocks_.pop_back();
  return statement;
}

void Parser::fail_statement(const Token& token) {
  if (is_one_of(token.text, kOutside)) {
    fail_at(token,
            fmt::format("'{}' is not part of the template language of chat templates", token.text));
  }
  if (ends_block(token.text) && !open_blocks_.empty()) {
    fail_at(token, fmt::format("Encountered unknown tag '{}'. The innermost block that needs to be "
                               "closed is '{}'.",
                               token.text, open_blocks_.back()));
  }
  fail_at(token, fmt::format("Encountered unknown tag {}.", describe(token)));
}

// Takes the name that closes a block and the end of the tag.
void Parser::end_block(std::string_view name) {
  if (!skip_name(name)) fail(fmt::format("expected '{}', got {}", name, describe(current())));
  expect_end_of_block();
}

Stmt Parser::parse_if(int line) {
  const std::size_t first_unknown = unknown_.size();
  IfStmt statement;
  do {
    statement.tests.push_back(parse_tuple(false));
    expect_end_of_block();
    statement.bodies.push_back(parse_body({"elif", "else", "endif"}));
  } while (skip_name("elif"));
  if (skip_name("else")) {
    expect_end_of_block();
    statement.otherwise = parse_body({"endif"});
  }
  end_block("endif");
  defer_unknown(first_unknown);
  return {line, std::move(statement)};
}

Stmt Parser::parse_for(int line) {
  auto node = std::make_unique<ForNode>();
  node->line = line;
  node->target = parse_target(false, "in");
  if (!skip_name("in")) fail(fmt::format("expected token 'in', got {}", describe(current())));
  node->iterable = parse_tuple(false, false, "recursive");
  if (skip_name("if")) node->test = std::make_unique<Expr>(parse_expression());
  node->test_target = node->target;
  node->recursive = skip_name("recursive");
  expect_end_of_block();
  ++loops_;
  node->body = parse_body({"endfor", "else"});
  --loops_;
  if (skip_name("else")) {
    expect_end_of_block();
    node->has_otherwise = true;
    node->otherwise = parse_body({"endfor"});
  }
  end_block("endfor");
  return {line, ForStmt{std::move(node)}};
}

Stmt Parser::parse_set(int line) {
  Target target = parse_target(true);
  if (skip_op("=")) {
    Expr value = parse_tuple();
    expect_end_of_block();
    return {line, SetStmt{std::move(target), std::move(value)}};
  }
  SetBlockStmt statement{std::move(target), {}, {}, {}};
  parse_filter_chain(statement.filter, false);
  expect_end_of_block();
  open_blocks_.emplace_back("set");
  statement.body = parse_body({"endset"});
  open_blocks_.pop_back();
  end_block("endset");
  return {line, std::move(statement)};
}

void Parser::parse_signature(MacroNode& macro) {
  expect_op("(");
  while (!at_op(")")) {
    if (!macro.parameters.empty()) expect_op(",");
    const Token& token = current();
    std::string name = expect_name();
    if (is_one_of(name, kConstants)) {
      fail_at(token, fmt::format("can't assign to '{}'", name));
    }
    if (std::find(macro.parameters.begin(), macro.parameters.end(), name) !=
        macro.parameters.end()) {
      fail_at(token, fmt::format("duplicate argument '{}'", name));
    }
    if (macro.parameters.size() >= kMaxArguments) {
      fail_at(token, fmt::format("a macro has more than {} parameters", kMaxArguments));
    }
    macro.parameters.push_back(std::move(name));
    if (skip_op("=")) {
      macro.defaults.push_back(parse_expression());
    } else if (!macro.defaults.empty()) {
      fail("non-default argument follows default argument");
    }
  }
  expect_op(")");
}

Stmt Parser::parse_macro(int line) {
  auto macro = std::make_unique<MacroNode>();
  macro->line = line;
  const Token& token = current();
  macro->name = expect_name();
  if (is_one_of(macro->name, kConstants)) {
    fail_at(token, fmt::format("can't assign to '{}'", macro->name));
  }
  parse_signature(*macro);
  expect_end_of_block();
  const int loops = std::exchange(loops_, 0);
  macro->body = parse_body({"endmacro"});
  loops_ = loops;
  end_block("endmacro");
  return {line, MacroStmt{std::move(macro), {}}};
}

Stmt Parser::parse_call_block(int line) {
  auto macro = std::make_unique<MacroNode>();
  macro->line = line;
  macro->name = "caller";
  if (at_op("(")) parse_signature(*macro);
  Expr call = parse_expression();
  auto* chain = std::get_if<Postfix>(&call.node);
  if (chain == nullptr || !std::holds_alternative<CallOp>(chain->ops.back().op)) {
    fail("expected call");
  }
  expect_end_of_block();
  const int loops = std::exchange(loops_, 0);
  macro->body = parse_body({"endcall"});
  loops_ = loops;
  end_block("endcall");
  return {line, CallBlockStmt{std::move(macro), std::move(call)}};
}

Stmt Parser::parse_filter_block(int line) {
  FilterBlockStmt statement;
  parse_filter_chain(statement.filter, true);
  expect_end_of_block();
  statement.body = parse_body({"endfilter"});
  end_block("endfilter");
  return {line, std::move(statement)};
}

Stmt Parser::parse_with(int line) {
  WithStmt statement;
  while (current().kind != TokenKind::kBlockEnd) {
    if (!statement.targets.empty()) expect_op(",");
    statement.targets.push_back(parse_target_item(false));
    expect_op("=");
    statement.values.push_back(parse_expression());
  }
  expect_end_of_block();
  statement.body = parse_body({"endwith"});
  end_block("endwith");
  return {line, std::move(statement)};
}

Stmt Parser::parse_print(int line) {
  OutputStmt output;
  while (current().kind != TokenKind::kBlockEnd) {
    if (!output.expressions.empty()) expect_op(",");
    output.expressions.push_back(parse_expression());
  }
  expect_end_of_block();
  return {line, std::move(output)};
}

Stmt Parser::parse_generation(int line) {
  auto macro = std::make_unique<MacroNode>();
  macro->line = line;
  macro->name = "generation";
  expect_end_of_block();
  const int loops = std::exchange(loops_, 0);
  macro->body = parse_body({"endgeneration"});
  loops_ = loops;
  end_block("endgeneration");
  return {line, GenerationStmt{std::move(macro)}};
}

Stmt Parser::parse_loop_control(int line, bool is_break) {
  expect_end_of_block();
  if (loops_ == 0) {
    fail(fmt::format("'{}' outside loop", is_break ? "break" : "continue"));
  }
  if (is_break) return {line, BreakStmt{}};
  return {line, ContinueStmt{}};
}

// One target or several with commas.
Target Parser::parse_target(bool with_attributes, std::string_view end_name) {
  const int line = current().line;
  Target tuple{Target::Kind::kTuple, line, {}, {}, {}, {}};
  bool is_tuple = false;
  while (true) {
    if (!tuple.items.empty()) {
      if (!skip_op(",")) break;
      is_tuple = true;
      const bool ended = at_op("=") || at_op(")") || current().kind == TokenKind::kBlockEnd ||
                         (!end_name.empty() && at_name(end_name));
      if (ended) break;
    }
    tuple.items.push_back(parse_target_item(with_attributes));
  }
  if (!is_tuple) return std::move(tuple.items.front());
  return tuple;
}

Target Parser::parse_target_item(bool with_attributes) {
  const Nested nested(*this);
  const Token& token = current();
  if (skip_op("(")) {
    Target inner = parse_target(with_attributes);
    expect_op(")");
    return inner;
  }
  std::string name = expect_name();
  if (is_one_of(name, kConstants)) fail_at(token, fmt::format("can't assign to '{}'", name));
  if (with_attributes && skip_op(".")) {
    return {Target::Kind::kAttribute, token.line, std::move(name), expect_name(), {}, {}};
  }
  return {Target::Kind::kName, token.line, std::move(name), {}, {}, {}};
}

}  // namespace tern::text::jinja
