// Renders a resolved template: expressions.
#include <optional>

#include "text/chat_template/compare.h"
#include "text/chat_template/evaluator.h"
#include "text/chat_template/operators.h"
#include "text/chat_template/print.h"
#include "text/chat_template/slice.h"

namespace tern::text::jinja {
namespace {

// What is written is counted when the template is loaded; this is for * and **.
void require_few_arguments(std::size_t count) {
  if (count <= kMaxArguments) return;
  raise(FaultKind::kLimit, "a call passes {} arguments; at most {} are taken", count,
        kMaxArguments);
}

}  // namespace

Value Evaluator::eval(const Expr& expr) {
  const Deeper deeper(*this);
  runtime_.budget.step();
  line_ = expr.line;
  return std::visit([this](const auto& node) { return eval(node); }, expr.node);
}

Value Evaluator::eval(const Name& node) {
  const Value& value = load(node.reference);
  return value.is_missing() ? node.undefined : value;
}

Value Evaluator::eval(const Sequence& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const Expr& item : node.items) items.push_back(eval(item));
  return node.tuple ? Value::tuple(std::move(items), &runtime_.budget)
                    : Value::list(std::move(items), &runtime_.budget);
}

Value Evaluator::eval(const DictExpr& node) {
  Dict dict;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    Value key = eval(node.keys[i]);
    dict.set(std::move(key), eval(node.values[i]), &runtime_.budget);
  }
  return make_dict(std::move(dict), &runtime_.budget);
}

Value Evaluator::eval(const Unary& node) {
  const Value value = eval(*node.operand);
  switch (node.op) {
    case UnaryOp::kNot:
      return Value::boolean(!truth(value));
    case UnaryOp::kMinus:
      return negate(value, &runtime_.budget);
    case UnaryOp::kPlus:
      return negate(negate(value, &runtime_.budget), &runtime_.budget);
  }
  return value;
}

Value Evaluator::eval(const Arithmetic& node) {
  Value value = eval(*node.first);
  // text + text + text is put together in one buffer, which keeps long messages linear.
  std::optional<TextBuilder> text;
  for (std::size_t i = 0; i < node.ops.size(); ++i) {
    const Value right = eval(node.operands[i]);
    if (node.ops[i] == ArithmeticOp::kAdd && right.is_string() && !right.string().markup) {
      if (!text && value.is_string() && !value.string().markup) {
        text.emplace(&runtime_.budget);
        text->append(value.string());
      }
      if (text) {
        text->append(right.string());
        continue;
      }
    }
    if (text) {
      value = text->finish();
      text.reset();
    }
    value = arithmetic(node.ops[i], value, right, &runtime_.budget);
  }
  return text ? text->finish() : value;
}

Value Evaluator::eval(const Concat& node) {
  TextBuilder text(&runtime_.budget);
  for (const Expr& part : node.parts) append_str(text, eval(part));
  return text.finish();
}

Value Evaluator::eval(const Logic& node) {
  Value value;
  for (const Expr& operand : node.operands) {
    value = eval(operand);
    if (truth(value) != node.conjunction) break;
  }
  return value;
}

Value Evaluator::eval(const Compare& node) {
  Value left = eval(*node.first);
  for (std::size_t i = 0; i < node.ops.size(); ++i) {
    Value right = eval(node.operands[i]);
    if (!compare(node.ops[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

bool Evaluator::compare(CompareOp op, const Value& a, const Value& b) {
  Budget* budget = &runtime_.budget;
  switch (op) {
    case CompareOp::kEq:
      return equals(a, b, budget);
    case CompareOp::kNe:
      return !equals(a, b, budget);
    case CompareOp::kLt:
      return ordered(Order::kLess, a, b, budget);
    case CompareOp::kLe:
      return ordered(Order::kLessEqual, a, b, budget);
    case CompareOp::kGt:
      return ordered(Order::kGreater, a, b, budget);
    case CompareOp::kGe:
      return ordered(Order::kGreaterEqual, a, b, budget);
    case CompareOp::kIn:
      return contains(b, a, budget);
    case CompareOp::kNotIn:
      return !contains(b, a, budget);
  }
  return false;
}

Value Evaluator::eval(const Conditional& node) {
  if (truth(eval(*node.test))) return eval(*node.yes);
  if (node.no) return eval(*node.no);
  return Value::undefined(
      "the inline if-expression evaluated to false and no else section was defined.");
}

Value Evaluator::eval(const Postfix& node) {
  return apply(eval(*node.subject), node.ops, 0, node.ops.size());
}

Value Evaluator::apply(Value subject, const std::vector<PostfixOp>& ops, std::size_t first,
                       std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    runtime_.budget.step();
    line_ = ops[i].line;
    const auto& op = ops[i].op;
    if (const auto* attribute = std::get_if<AttributeOp>(&op)) {
      const auto* next = i + 1 < end ? std::get_if<CallOp>(&ops[i + 1].op) : nullptr;
      bool changes_object = false;
      const NativeRow* method =
          next != nullptr ? find_method(subject, attribute->name, changes_object) : nullptr;
      if (method != nullptr) {  // a method that is called needs no value of its own
        subject = call_native(runtime_, *method, subject, arguments(next->arguments));
        ++i;
      } else {
        subject = get_attribute(runtime_, subject, attribute->name);
      }
    } else if (const auto* item = std::get_if<ItemOp>(&op)) {
      subject = get_item(runtime_, subject, eval(*item->key));
    } else if (const auto* part = std::get_if<SliceOp>(&op)) {
      subject = apply_slice(subject, *part);
    } else if (const auto* next_call = std::get_if<CallOp>(&op)) {
      subject = call(subject, arguments(next_call->arguments));
    } else if (const auto* filter = std::get_if<FilterOp>(&op)) {
      subject = apply_filter(subject, *filter);
    } else {
      subject = apply_test(subject, std::get<TestOp>(op));
    }
  }
  return subject;
}

Value Evaluator::apply_slice(const Value& subject, const SliceOp& op) {
  const Value start = op.start ? eval(*op.start) : Value();
  const Value stop = op.stop ? eval(*op.stop) : Value();
  const Value step = op.step ? eval(*op.step) : Value();
  return slice(runtime_, subject, start, stop, step);
}

Value Evaluator::apply_filter(const Value& subject, const FilterOp& op) {
  if (op.row == nullptr) raise(FaultKind::kRuntime, "No filter named '{}' found.", op.name);
  return call_native(runtime_, *op.row, subject, arguments(op.arguments));
}

Value Evaluator::apply_test(const Value& subject, const TestOp& op) {
  if (op.row == nullptr) raise(FaultKind::kRuntime, "No test named '{}' found.", op.name);
  const Value result = call_native(runtime_, *op.row, subject, arguments(op.arguments));
  return op.negated ? Value::boolean(!truth(result)) : result;
}

Arguments Evaluator::arguments(const CallArguments& node) {
  Arguments result;
  result.positional.reserve(node.positional.size());
  for (const Expr& expr : node.positional) result.positional.push_back(eval(expr));
  if (node.star) {
    for (Value& value : to_vector(eval(*node.star), &runtime_.budget)) {
      result.positional.push_back(std::move(value));
    }
    require_few_arguments(result.positional.size());
  }
  for (std::size_t i = 0; i < node.named.size(); ++i) {
    result.named.emplace_back(node.names[i], eval(node.named[i]));
  }
  if (!node.double_star) return result;
  const Value more = eval(*node.double_star);
  if (!more.is_dict()) {
    raise(FaultKind::kType, "argument after ** must be a mapping, not {}", type_name(more));
  }
  const std::size_t written = result.named.size();
  require_few_arguments(result.positional.size() + written + more.dict().dict.size());
  for (const Dict::Entry& entry : more.dict().dict.entries()) {
    if (!entry.key.is_string()) raise(FaultKind::kType, "keywords must be strings");
    for (std::size_t i = 0; i < written; ++i) {
      if (result.named[i].first == entry.key.text()) {
        raise(FaultKind::kType, "got multiple values for keyword argument {}",
              quote(entry.key.text()));
      }
    }
    runtime_.budget.step();
    result.named.emplace_back(std::string(entry.key.text()), entry.value);
  }
  return result;
}

}  // namespace tern::text::jinja
