// Tokens to syntax tree: the frame of the parser, messages, nesting.
#include "text/chat_template/parser.h"

#include "text/chat_template/characters.h"

namespace tern::text::jinja {

void Parser::enter() {
  if (depth_ >= kMaxParserDepth) {
    fail(fmt::format("the template is nested deeper than {} levels", kMaxParserDepth));
  }
  ++depth_;
}

void Parser::fail(const std::string& text) const { fail_at(current(), text); }

void Parser::fail_at(const Token& token, const std::string& text) const {
  throw TemplateFault(FaultKind::kSyntax, text, token.line, column_of(source_, token.text));
}

std::string Parser::describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "template text";
    case TokenKind::kVariableBegin:
      return "'begin of print statement'";
    case TokenKind::kVariableEnd:
      return "'end of print statement'";
    case TokenKind::kBlockBegin:
      return "'begin of statement block'";
    case TokenKind::kBlockEnd:
      return "'end of statement block'";
    case TokenKind::kEnd:
      return "'end of template'";
    default:
      break;
  }
  std::string_view text = token.text;
  if (text.size() > 40) text = text.substr(0, byte_position(text, 20));
  return fmt::format("'{}'", text);
}

bool Parser::skip_op(std::string_view text) {
  if (!at_op(text)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view text) {
  if (!at_name(text)) return false;
  take();
  return true;
}

void Parser::expect_op(std::string_view text) {
  if (!skip_op(text)) {
    fail(fmt::format("expected token '{}', got {}", text, describe(current())));
  }
}

std::string Parser::expect_name() {
  if (current().kind != TokenKind::kName) {
    fail(fmt::format("expected a name, got {}", describe(current())));
  }
  return std::string(take().text);
}

void Parser::expect_end_of_block() {
  if (current().kind != TokenKind::kBlockEnd) {
    fail(fmt::format("expected token 'end of statement block', got {}", describe(current())));
  }
  take();
}

void Parser::defer_unknown(std::size_t first) {
  for (std::size_t i = first; i < unknown_.size(); ++i) unknown_[i].deferred = true;
}

Template Parser::run() {
  template_.body = parse_body({});
  for (const Unknown& unknown : unknown_) {
    if (unknown.deferred) continue;
    fail_at(unknown.token, fmt::format("No {} named '{}'.", unknown.what, unknown.token.text));
  }
  return std::move(template_);
}

Template parse_template(std::string_view source) { return Parser(source, tokenize(source)).run(); }

}  // namespace tern::text::jinja
