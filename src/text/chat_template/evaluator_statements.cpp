// Renders a resolved template: statements.
#include <algorithm>

#include "text/chat_template/compare.h"
#include "text/chat_template/evaluator.h"
#include "text/chat_template/print.h"

namespace tern::text::jinja {

Evaluator::Flow Evaluator::exec(const Body& body) {
  for (const Stmt& statement : body) {
    const Flow flow = exec(statement);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const Stmt& statement) {
  const Deeper deeper(*this);
  runtime_.budget.step();
  line_ = statement.line;
  return std::visit([this](const auto& node) { return exec(node); }, statement.node);
}

Evaluator::Flow Evaluator::exec(const TextStmt& node) {
  out_->append(node.text.string());
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const OutputStmt& node) {
  for (const Expr& expr : node.expressions) append_str(*out_, eval(expr));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const IfStmt& node) {
  for (std::size_t i = 0; i < node.tests.size(); ++i) {
    if (truth(eval(node.tests[i]))) return exec(node.bodies[i]);
  }
  return exec(node.otherwise);
}

Evaluator::Flow Evaluator::exec(const ForStmt& node) {
  const ForNode& loop = *node.node;
  Value iterable = eval(loop.iterable);
  if (!loop.recursive) return run_loop(loop, std::move(iterable), 0, frame_);
  out_->append(call_loop(loop, std::move(iterable), 0, frame_).string());
  return Flow::kNext;
}

bool Evaluator::passes(const ForNode& loop, const Value& item, Frame* frame) {
  // Asked for by the loop variable, which a macro may have been given: the variables are the
  // loop's.
  Frame* const current = std::exchange(frame_, frame);
  assign(loop.test_target, item);
  enter(loop.test_scope);
  const bool result = truth(eval(*loop.test));
  frame_ = current;
  return result;
}

Evaluator::Flow Evaluator::run_loop(const ForNode& loop, Value iterable, std::int64_t depth,
                                    Frame* outer) {
  bool completed = false;
  Value item;
  if (loop.uses_loop) {
    std::function<bool(const Value&)> accepts;
    if (loop.test) {
      accepts = [this, &loop, frame = frame_](const Value& next) {
        return passes(loop, next, frame);
      };
    }
    const auto data = std::make_shared<LoopData>(&runtime_.budget, std::move(iterable),
                                                 std::move(accepts), depth);
    struct Finish {
      LoopData& loop;
      ~Finish() { loop.finish(); }
    } const finish{*data};
    if (loop.recursive) data->recursive = &loop;
    data->frame = outer;
    store(loop.loop, Value::object(Kind::kLoop, data));
    while (data->advance(item)) {
      if (!run_round(loop, item, completed)) break;
    }
  } else {
    Iteration walk(std::move(iterable), &runtime_.budget);
    while (walk.next(item)) {
      if (loop.test && !passes(loop, item, frame_)) continue;
      if (!run_round(loop, item, completed)) break;
    }
  }
  if (!loop.has_otherwise || completed) return Flow::kNext;
  enter(loop.otherwise_scope);
  return exec(loop.otherwise);
}

bool Evaluator::run_round(const ForNode& loop, const Value& item, bool& completed) {
  assign(loop.target, item);
  enter(loop.body_scope);
  const Flow flow = exec(loop.body);
  if (flow == Flow::kNext) completed = true;
  return flow != Flow::kBreak;
}

Evaluator::Flow Evaluator::exec(const SetStmt& node) {
  check_namespaces(node.target);
  assign(node.target, eval(node.value));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const SetBlockStmt& node) {
  Value text;
  {
    Capture capture(*this);
    enter(node.scope);
    const Flow flow = exec(node.body);
    if (flow != Flow::kNext) return flow;
    text = capture.finish();
  }
  text = apply(std::move(text), node.filter.ops, 0, node.filter.ops.size());
  check_namespaces(node.target);
  assign(node.target, text);
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const MacroStmt& node) {
  store(node.reference, Value::object(Kind::kMacro, std::make_shared<MacroData>(
                                                        &runtime_.budget, *node.macro, frame_)));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const CallBlockStmt& node) {
  const auto& chain = std::get<Postfix>(node.call.node);
  const std::size_t last = chain.ops.size() - 1;
  const Value callee = apply(eval(*chain.subject), chain.ops, 0, last);
  Arguments passed = arguments(std::get<CallOp>(chain.ops[last].op).arguments);
  passed.named.emplace_back(
      "caller", Value::object(Kind::kMacro,
                              std::make_shared<MacroData>(&runtime_.budget, *node.macro, frame_)));
  append_str(*out_, call(callee, passed));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const FilterBlockStmt& node) {
  Value text;
  {
    Capture capture(*this);
    enter(node.scope);
    const Flow flow = exec(node.body);
    if (flow != Flow::kNext) return flow;
    text = capture.finish();
  }
  append_str(*out_, apply(std::move(text), node.filter.ops, 0, node.filter.ops.size()));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const WithStmt& node) {
  for (std::size_t i = 0; i < node.targets.size(); ++i) {
    assign(node.targets[i], eval(node.values[i]));
  }
  enter(node.scope);
  return exec(node.body);
}

Evaluator::Flow Evaluator::exec(const GenerationStmt& node) {
  const Call call(*this, node.macro->function, frame_);
  enter(node.macro->function.entry);
  return exec(node.macro->body);
}

const Value& Evaluator::require_namespace(const Target& target) const {
  const Value& value = load(target.reference);
  if (!value.is(Kind::kNamespace)) {
    raise(FaultKind::kRuntime, "cannot assign attribute on non-namespace object");
  }
  return value;
}

// Before anything is evaluated, and for all parts of a tuple.
void Evaluator::check_namespaces(const Target& target) const {
  if (target.kind == Target::Kind::kAttribute) (void)require_namespace(target);
  for (const Target& item : target.items) check_namespaces(item);
}

void Evaluator::assign(const Target& target, const Value& value) {
  switch (target.kind) {
    case Target::Kind::kName:
      return store(target.reference, value);
    case Target::Kind::kAttribute: {
      require_namespace_name(target.attribute);
      // Once more: an earlier part of the same tuple may have set the name anew.
      require_namespace(target).space().set(target.attribute, value, runtime_.budget);
      return;
    }
    case Target::Kind::kTuple:
      break;
  }
  if (!is_iterable(value)) {
    raise(FaultKind::kType, "cannot unpack non-iterable {} object", type_name(value));
  }
  const std::vector<Value> items = to_vector(value, &runtime_.budget);
  if (items.size() > target.items.size()) {
    raise(FaultKind::kValue, "too many values to unpack (expected {})", target.items.size());
  }
  if (items.size() < target.items.size()) {
    raise(FaultKind::kValue, "not enough values to unpack (expected {}, got {})",
          target.items.size(), items.size());
  }
  for (std::size_t i = 0; i < items.size(); ++i) assign(target.items[i], items[i]);
}

}  // namespace tern::text::jinja
