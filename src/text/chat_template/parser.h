// Tokens to syntax tree.
#pragma once

#include <string_view>
#include <vector>

#include "text/chat_template/ast.h"
#include "text/chat_template/lexer.h"

namespace tern::text::jinja {

// The tree without resolved names. `source` is normalized. Throws TemplateFault.
[[nodiscard]] Template parse_template(std::string_view source);

// The common part of both halves of the parser: the tokens and how deep it stands.
class Parser {
 public:
  Parser(std::string_view source, std::vector<Token> tokens)
      : source_(source), tokens_(std::move(tokens)) {}
  Template run();

 private:
  // One level of nesting, counted while it is parsed.
  class Nested {
   public:
    explicit Nested(Parser& parser) : parser_(parser) { parser.enter(); }
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };
  void enter();

  [[noreturn]] void fail(const std::string& text) const;
  [[noreturn]] void fail_at(const Token& token, const std::string& text) const;
  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& ahead() const {
    return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
  }
  const Token& take() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  [[nodiscard]] bool at_op(std::string_view text) const {
    return current().kind == TokenKind::kOperator && current().text == text;
  }
  [[nodiscard]] bool at_name(std::string_view text) const {
    return current().kind == TokenKind::kName && current().text == text;
  }
  bool skip_op(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_op(std::string_view text);
  std::string expect_name();
  void expect_end_of_block();
  static std::string describe(const Token& token);

  // parser_statements.cpp
  Body parse_body(std::initializer_list<std::string_view> ends);
  void parse_text(Body& body);
  void parse_output(Body& body);
  Stmt parse_statement();
  Stmt parse_if(int line);
  Stmt parse_for(int line);
  Stmt parse_set(int line);
  Stmt parse_macro(int line);
  Stmt parse_call_block(int line);
  Stmt parse_filter_block(int line);
  Stmt parse_with(int line);
  Stmt parse_print(int line);
  Stmt parse_generation(int line);
  Stmt parse_loop_control(int line, bool is_break);
  [[noreturn]] void fail_statement(const Token& name);
  void parse_signature(MacroNode& macro);
  Target parse_target(bool with_attributes, std::string_view end_name = {});
  Target parse_target_item(bool with_attributes);
  void end_block(std::string_view name);

  // parser_expressions.cpp
  Expr parse_tuple(bool with_conditional = true, bool in_parentheses = false,
                   std::string_view end_name = {});
  [[nodiscard]] bool at_tuple_end(std::string_view end_name) const;
  Expr parse_expression(bool with_conditional = true);
  Expr parse_or();
  Expr parse_and();
  Expr parse_not();
  Expr parse_compare();
  Expr parse_sum();
  Expr parse_concat();
  Expr parse_product();
  Expr parse_power();
  Expr parse_unary(bool with_filters = true);
  Expr parse_primary();
  Expr parse_number();
  Expr parse_list(int line);
  Expr parse_dict(int line);
  void parse_postfix(Expr& expr);
  void parse_filters(Expr& expr);
  PostfixOp parse_subscript();
  ExprPtr parse_slice_part();
  PostfixOp parse_filter();
  PostfixOp parse_test();
  void parse_filter_chain(Postfix& chain, bool starts_inline);
  CallArguments parse_arguments();
  static Postfix& as_postfix(Expr& expr);

  std::string_view source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int chained_conditionals_ = 0;
  int loops_ = 0;  // for statements around, within the same function
  // Filters and tests that do not exist. Where a condition stands before them they count only
  // when they are reached, because published templates rely on it.
  struct Unknown {
    Token token;
    std::string_view what;
    bool deferred;
  };
  void defer_unknown(std::size_t first);
  std::vector<Unknown> unknown_;
  // Open blocks, innermost last, and what would close them: for messages.
  std::vector<std::string> open_blocks_;
  Template template_;
};

}  // namespace tern::text::jinja
