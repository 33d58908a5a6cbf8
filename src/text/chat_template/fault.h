// What a template can do wrong: an exception inside of the engine, turned into an Error at its
// edge.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tern/error.h"

namespace tern::text::jinja {

// The classes that the reference renderer tells apart (names of its exceptions in brackets).
enum class FaultKind {
  kSyntax,          // found when the template is loaded
  kRaised,          // raise_exception(...): the message is the user's, word for word
  kUndefined,       // an undefined value was used [UndefinedError]
  kType,            // [TypeError]
  kValue,           // [ValueError]
  kSecurity,        // a name that is not data, a method that changes its object [SecurityError]
  kRuntime,         // [TemplateRuntimeError]
  kRecursion,       // calls, expressions or values nested too deep
  kZeroDivision,    // [ZeroDivisionError]
  kOverflow,        // a number beyond 64 bits, a range that is too long
  kIndex,           // [IndexError]
  kFilterArgument,  // [FilterArgumentError]
  kLimit,           // steps, memory, output
};

class TemplateFault : public Error {
 public:
  TemplateFault(FaultKind kind, const std::string& text, int line = 0, int column = 0)
      : Error(ErrorCode::kTemplate, text), kind_(kind), line_(line), column_(column) {}
  [[nodiscard]] FaultKind kind() const noexcept { return kind_; }
  [[nodiscard]] int line() const noexcept { return line_; }      // 1-based, 0 = not known
  [[nodiscard]] int column() const noexcept { return column_; }  // 1-based, 0 = not known

 private:
  FaultKind kind_;
  int line_;
  int column_;
};

template <class... Args>
[[noreturn]] void raise(FaultKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw TemplateFault(kind, fmt::format(format, std::forward<Args>(args)...));
}

// The error that leaves the engine: names the place, except that a raised message stays as it is.
// `line` is where the evaluation stood, for faults that do not know better.
[[nodiscard]] inline Error to_error(const TemplateFault& fault, int line) {
  if (fault.kind() == FaultKind::kRaised) return Error(ErrorCode::kTemplate, fault.message());
  const int at = fault.line() != 0 ? fault.line() : line;
  std::string place = fmt::format("chat template, line {}", at);
  if (fault.column() != 0) place += fmt::format(", column {}", fault.column());
  return Error(ErrorCode::kTemplate, place + ": " + fault.message());
}

}  // namespace tern::text::jinja
