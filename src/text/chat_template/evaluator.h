// Renders a resolved template: walks the tree, within the budget of the rendering.
#pragma once

#include <memory>
#include <vector>

#include "text/chat_template/ast.h"
#include "text/chat_template/native.h"
#include "text/chat_template/objects.h"
#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {

// The variables of one call of a function (or of the template itself).
struct Frame {
  std::vector<Value> slots;
  Frame* parent;
};

class Evaluator {
 public:
  Evaluator(const Template& tree, Budget& budget, const Clock& now);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Renders with these variables and nothing else from outside. Throws TemplateFault.
  void render(const Dict& variables, TextBuilder& out);
  // The line that was evaluated last, for faults that do not know theirs.
  [[nodiscard]] int line() const { return line_; }

 private:
  enum class Flow : std::uint8_t { kNext, kBreak, kContinue };
  class Deeper;
  class Call;
  class Capture;

  // evaluator_expressions.cpp
  Value eval(const Expr& expr);
  Value eval(const Literal& node) { return node.value; }
  Value eval(const Name& node);
  Value eval(const Sequence& node);
  Value eval(const DictExpr& node);
  Value eval(const Unary& node);
  Value eval(const Arithmetic& node);
  Value eval(const Concat& node);
  Value eval(const Logic& node);
  Value eval(const Compare& node);
  Value eval(const Conditional& node);
  Value eval(const Postfix& node);
  [[nodiscard]] bool compare(CompareOp op, const Value& a, const Value& b);
  // The operations of a chain from number `first` up to `end` applied to a value.
  Value apply(Value subject, const std::vector<PostfixOp>& ops, std::size_t first, std::size_t end);
  Value apply_slice(const Value& subject, const SliceOp& op);
  Value apply_filter(const Value& subject, const FilterOp& op);
  Value apply_test(const Value& subject, const TestOp& op);
  Arguments arguments(const CallArguments& node);

  // evaluator_calls.cpp
  Value call(const Value& callee, const Arguments& arguments);
  Value call_macro(const MacroData& macro, const Arguments& arguments);
  void pass_arguments(const MacroNode& macro, const Arguments& arguments);
  void pass_extra_arguments(const MacroNode& macro, const Arguments& arguments,
                            const std::vector<bool>& used);
  Value call_loop(const ForNode& loop, Value iterable, std::int64_t depth, Frame* parent);

  // evaluator_statements.cpp
  Flow exec(const Body& body);
  Flow exec(const Stmt& statement);
  Flow exec(const TextStmt& node);
  Flow exec(const OutputStmt& node);
  Flow exec(const IfStmt& node);
  Flow exec(const ForStmt& node);
  Flow exec(const SetStmt& node);
  Flow exec(const SetBlockStmt& node);
  Flow exec(const MacroStmt& node);
  Flow exec(const CallBlockStmt& node);
  Flow exec(const FilterBlockStmt& node);
  Flow exec(const WithStmt& node);
  Flow exec(const GenerationStmt& node);
  Flow exec(const BreakStmt&) { return Flow::kBreak; }
  Flow exec(const ContinueStmt&) { return Flow::kContinue; }
  Flow run_loop(const ForNode& loop, Value iterable, std::int64_t depth, Frame* outer);
  bool passes(const ForNode& loop, const Value& item, Frame* frame);
  // One round: false when the loop ends here.
  bool run_round(const ForNode& loop, const Value& item, bool& completed);

  void enter(const Scope& scope);
  void assign(const Target& target, const Value& value);
  void check_namespaces(const Target& target) const;
  [[nodiscard]] const Value& require_namespace(const Target& target) const;
  void store(const Reference& reference, Value value);
  [[nodiscard]] const Value& load(const Reference& reference) const;

  const Template& tree_;
  Runtime runtime_;
  std::vector<Value> context_;
  Frame* frame_ = nullptr;
  TextBuilder* out_ = nullptr;
  int line_ = 0;
  int depth_ = 0;
  int calls_ = 0;
  // Frames that macros may refer to after their call has ended; freed with the rendering.
  std::vector<std::unique_ptr<Frame>> kept_;
};

// One level of nested evaluation.
class Evaluator::Deeper {
 public:
  explicit Deeper(Evaluator& evaluator) : evaluator_(evaluator) {
    if (evaluator.depth_ >= kMaxEvaluationDepth) {
      raise(FaultKind::kRecursion, "the template is evaluated deeper than {} levels",
            kMaxEvaluationDepth);
    }
    ++evaluator.depth_;
  }
  ~Deeper() { --evaluator_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Evaluator& evaluator_;
};

// A call: variables of its own until it ends.
class Evaluator::Call {
 public:
  Call(Evaluator& evaluator, const Function& function, Frame* parent);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Evaluator& evaluator_;
  std::unique_ptr<Frame> frame_;
  Frame* caller_;
  std::size_t held_;
  bool kept_;
};

// Output goes into a text of its own until it ends.
class Evaluator::Capture {
 public:
  explicit Capture(Evaluator& evaluator)
      : evaluator_(evaluator),
        text_(&evaluator.runtime_.budget, kMaxOutputBytes),
        outer_(evaluator.out_) {
    evaluator.out_ = &text_;
  }
  ~Capture() { evaluator_.out_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  [[nodiscard]] Value finish() { return text_.finish(); }

 private:
  Evaluator& evaluator_;
  TextBuilder text_;
  TextBuilder* outer_;
};

}  // namespace tern::text::jinja
