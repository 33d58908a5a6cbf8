// The syntax tree of a template. Chains (a + b + c, x.y.z|f) are flat, so that depth means nesting.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "text/chat_template/native.h"
#include "text/chat_template/operators.h"
#include "text/chat_template/value.h"

namespace tern::text::jinja {

// Where the value of a name is found; filled in by the resolver.
struct Reference {
  enum class Where : std::uint8_t { kContext, kSlot };
  Where where = Where::kContext;
  std::uint32_t hops = 0;   // functions outwards, for slots
  std::uint32_t index = 0;  // of the slot or of the name in Template::context_names
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Literal {
  Value value;
};
struct Name {
  std::string name;
  Value undefined;  // what it is when nobody sets it
  Reference reference;
};
struct Sequence {
  bool tuple;
  std::vector<Expr> items;
};
struct DictExpr {
  std::vector<Expr> keys;
  std::vector<Expr> values;
};
enum class UnaryOp : std::uint8_t { kNot, kMinus, kPlus };
struct Unary {
  UnaryOp op;
  ExprPtr operand;
};
// first op operand op operand ..., from the left.
struct Arithmetic {
  ExprPtr first;
  std::vector<ArithmeticOp> ops;
  std::vector<Expr> operands;
};
struct Concat {
  std::vector<Expr> parts;
};
struct Logic {
  bool conjunction;
  std::vector<Expr> operands;
};
enum class CompareOp : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };
struct Compare {
  ExprPtr first;
  std::vector<CompareOp> ops;
  std::vector<Expr> operands;
};
struct Conditional {
  ExprPtr test, yes, no;  // no may be null
};

struct CallArguments {
  std::vector<Expr> positional;
  std::vector<std::string> names;
  std::vector<Expr> named;
  ExprPtr star;         // *args
  ExprPtr double_star;  // **kwargs
};
struct AttributeOp {
  std::string name;
};
struct ItemOp {
  ExprPtr key;
};
struct SliceOp {
  ExprPtr start, stop, step;  // each may be null
};
struct CallOp {
  CallArguments arguments;
};
struct FilterOp {
  std::string name;
  const NativeRow* row;  // null: no such filter, an error when reached
  CallArguments arguments;
};
struct TestOp {
  std::string name;
  const NativeRow* row;
  bool negated;
  CallArguments arguments;
};
struct PostfixOp {
  int line;
  std::variant<AttributeOp, ItemOp, SliceOp, CallOp, FilterOp, TestOp> op;
};
// subject.a[b](c)|f is t: applied from the left. A filter block has no subject.
struct Postfix {
  ExprPtr subject;
  std::vector<PostfixOp> ops;
};

struct Expr {
  int line = 0;
  std::variant<Literal, Name, Sequence, DictExpr, Unary, Arithmetic, Concat, Logic, Compare,
               Conditional, Postfix>
      node;
};

// --- Statements -----------------------------------------------------------------------------

struct Stmt;
using Body = std::vector<Stmt>;

// What a variable of a scope holds when the scope is entered.
struct ScopeInit {
  enum class From : std::uint8_t { kNothing, kContext, kOuter };
  std::uint32_t slot;
  From from;
  Reference outer;  // kContext, kOuter
};
struct Scope {
  std::vector<ScopeInit> inits;
};
// A stretch of code with variables of its own for each call.
struct Function {
  std::uint32_t slots = 0;
  bool captured = false;  // a macro inside of it may outlive the call
  Scope entry;
};

struct Target {
  enum class Kind : std::uint8_t { kName, kAttribute, kTuple };
  Kind kind;
  int line;
  std::string name;
  std::string attribute;
  Reference reference;
  std::vector<Target> items;
};

struct TextStmt {
  Value text;
};
struct OutputStmt {
  std::vector<Expr> expressions;
};
struct IfStmt {
  std::vector<Expr> tests;
  std::vector<Body> bodies;  // one per test
  Body otherwise;
};
struct ForNode {
  int line;
  Target target;
  Expr iterable;
  ExprPtr test;
  Target test_target;  // the same names in the scope of the test
  bool recursive = false;
  bool has_otherwise = false;
  Body body;
  Body otherwise;

  bool uses_loop = false;
  Reference loop;
  Scope body_scope, test_scope, otherwise_scope;
  Function function;  // recursive loops only
};
struct ForStmt {
  std::unique_ptr<ForNode> node;
};
struct SetStmt {
  Target target;
  Expr value;
};
struct SetBlockStmt {
  Target target;
  Postfix filter;  // without subject; no ops: no filter
  Body body;
  Scope scope;
};
struct MacroNode {
  int line;
  std::string name;
  std::vector<std::string> parameters;
  std::vector<Expr> defaults;  // of the last parameters
  Body body;

  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
  std::vector<Reference> parameter_slots;
  Reference caller, varargs, kwargs;
  Function function;
};
struct MacroStmt {
  std::unique_ptr<MacroNode> macro;
  Reference reference;
};
struct CallBlockStmt {
  std::unique_ptr<MacroNode> macro;  // the body
  Expr call;                         // a Postfix that ends in a CallOp
};
struct FilterBlockStmt {
  Postfix filter;
  Body body;
  Scope scope;
};
struct WithStmt {
  std::vector<Target> targets;
  std::vector<Expr> values;
  Body body;
  Scope scope;
};
struct GenerationStmt {
  std::unique_ptr<MacroNode> macro;
};
struct BreakStmt {};
struct ContinueStmt {};

struct Stmt {
  int line = 0;
  std::variant<TextStmt, OutputStmt, IfStmt, ForStmt, SetStmt, SetBlockStmt, MacroStmt,
               CallBlockStmt, FilterBlockStmt, WithStmt, GenerationStmt, BreakStmt, ContinueStmt>
      node;
};

struct Template {
  Body body;
  Function function;                       // of the whole template
  std::vector<std::string> context_names;  // names that may come from outside
  std::vector<std::string> literals;       // template text and string literals
};

}  // namespace tern::text::jinja
