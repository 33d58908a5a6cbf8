// Visits every name in a stretch of a template, inner scopes included.
#pragma once

#include <functional>
#include <string>

#include "text/chat_template/ast.h"

namespace tern::text::jinja {

// is_store: the name is set rather than read.
using NameVisitor = std::function<void(const std::string& name, bool is_store, int line)>;

void walk_names(const Body& body, const NameVisitor& visit);
void walk_names(const Expr& expr, const NameVisitor& visit);
void walk_names(const Target& target, const NameVisitor& visit);
[[nodiscard]] bool reads_name(const Body& body, std::string_view name);

// Calls `visit` for each expression that stands directly in a call or postfix operation.
template <class Visit>
void for_each_argument(const CallArguments& arguments, Visit&& visit) {
  for (const Expr& expr : arguments.positional) visit(expr);
  for (const Expr& expr : arguments.named) visit(expr);
  if (arguments.star) visit(*arguments.star);
  if (arguments.double_star) visit(*arguments.double_star);
}
template <class Visit>
void for_each_operand(const Postfix& chain, Visit&& visit) {
  if (chain.subject) visit(*chain.subject);
  for (const PostfixOp& op : chain.ops) {
    if (const auto* item = std::get_if<ItemOp>(&op.op)) visit(*item->key);
    if (const auto* slice = std::get_if<SliceOp>(&op.op)) {
      for (const ExprPtr* part : {&slice->start, &slice->stop, &slice->step}) {
        if (*part) visit(**part);
      }
    }
    if (const auto* call = std::get_if<CallOp>(&op.op)) for_each_argument(call->arguments, visit);
    if (const auto* filter = std::get_if<FilterOp>(&op.op)) {
      for_each_argument(filter->arguments, visit);
    }
    if (const auto* test = std::get_if<TestOp>(&op.op)) for_each_argument(test->arguments, visit);
  }
}
// The direct parts of an expression, in the order of evaluation.
template <class Visit>
void for_each_part(const Expr& expr, Visit&& visit) {
  const auto all = [&](const std::vector<Expr>& list) {
    for (const Expr& part : list) visit(part);
  };
  if (const auto* sequence = std::get_if<Sequence>(&expr.node)) return all(sequence->items);
  if (const auto* concat = std::get_if<Concat>(&expr.node)) return all(concat->parts);
  if (const auto* logic = std::get_if<Logic>(&expr.node)) return all(logic->operands);
  if (const auto* unary = std::get_if<Unary>(&expr.node)) return visit(*unary->operand);
  if (const auto* chain = std::get_if<Postfix>(&expr.node)) return for_each_operand(*chain, visit);
  if (const auto* dict = std::get_if<DictExpr>(&expr.node)) {
    all(dict->keys);
    all(dict->values);
  } else if (const auto* sum = std::get_if<Arithmetic>(&expr.node)) {
    visit(*sum->first);
    all(sum->operands);
  } else if (const auto* compare = std::get_if<Compare>(&expr.node)) {
    visit(*compare->first);
    all(compare->operands);
  } else if (const auto* conditional = std::get_if<Conditional>(&expr.node)) {
    visit(*conditional->test);
    visit(*conditional->yes);
    if (conditional->no) visit(*conditional->no);
  }
}

}  // namespace tern::text::jinja
