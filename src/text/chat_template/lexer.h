// Cuts a template into tokens, with the white space rules of chat templates.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template/fault.h"

namespace tern::text::jinja {

enum class TokenKind : std::uint8_t {
  kData,  // template text as it will be printed
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,  // with its quotes and escapes
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // into the source
  int line = 1;
};

// What the template text is before anything else: LF line ends, without one line end at the end.
[[nodiscard]] std::string normalize_source(std::string_view source);

// All tokens of a normalized source, kEnd last. trim_blocks and lstrip_blocks are on. Throws
// TemplateFault with line and column.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source);

// 1-based, in code points.
[[nodiscard]] int column_of(std::string_view source, std::string_view token);

// The value of a string literal: Python's escapes, unknown ones kept.
[[nodiscard]] std::string unescape(const Token& literal, std::string_view source);

}  // namespace tern::text::jinja
