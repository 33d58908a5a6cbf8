// Visits every name in a stretch of a template, inner scopes included.
#include "text/chat_template/walk.h"

namespace tern::text::jinja {
namespace {

void walk_chain(const Postfix& chain, const NameVisitor& visit) {
  for_each_operand(chain, [&](const Expr& expr) { walk_names(expr, visit); });
}

void walk_macro(const MacroNode& macro, const NameVisitor& visit) {
  for (const std::string& parameter : macro.parameters) visit(parameter, true, macro.line);
  for (const Expr& expr : macro.defaults) walk_names(expr, visit);
  walk_names(macro.body, visit);
}

void walk_for(const ForNode& loop, const NameVisitor& visit) {
  walk_names(loop.target, visit);
  walk_names(loop.iterable, visit);
  if (loop.test) walk_names(*loop.test, visit);
  walk_names(loop.body, visit);
  walk_names(loop.otherwise, visit);
}

void walk_statement(const Stmt& statement, const NameVisitor& visit) {
  if (const auto* output = std::get_if<OutputStmt>(&statement.node)) {
    for (const Expr& expr : output->expressions) walk_names(expr, visit);
  } else if (const auto* condition = std::get_if<IfStmt>(&statement.node)) {
    for (const Expr& expr : condition->tests) walk_names(expr, visit);
    for (const Body& body : condition->bodies) walk_names(body, visit);
    walk_names(condition->otherwise, visit);
  } else if (const auto* loop = std::get_if<ForStmt>(&statement.node)) {
    walk_for(*loop->node, visit);
  } else if (const auto* set = std::get_if<SetStmt>(&statement.node)) {
    walk_names(set->value, visit);
    walk_names(set->target, visit);
  } else if (const auto* block = std::get_if<SetBlockStmt>(&statement.node)) {
    walk_names(block->target, visit);
    walk_chain(block->filter, visit);
    walk_names(block->body, visit);
  } else if (const auto* macro = std::get_if<MacroStmt>(&statement.node)) {
    visit(macro->macro->name, true, statement.line);
    walk_macro(*macro->macro, visit);
  } else if (const auto* call = std::get_if<CallBlockStmt>(&statement.node)) {
    walk_names(call->call, visit);
    walk_macro(*call->macro, visit);
  } else if (const auto* filter = std::get_if<FilterBlockStmt>(&statement.node)) {
    walk_chain(filter->filter, visit);
    walk_names(filter->body, visit);
  } else if (const auto* with = std::get_if<WithStmt>(&statement.node)) {
    for (const Expr& expr : with->values) walk_names(expr, visit);
    for (const Target& target : with->targets) walk_names(target, visit);
    walk_names(with->body, visit);
  } else if (const auto* generation = std::get_if<GenerationStmt>(&statement.node)) {
    walk_macro(*generation->macro, visit);
  }
}

}  // namespace

void walk_names(const Body& body, const NameVisitor& visit) {
  for (const Stmt& statement : body) walk_statement(statement, visit);
}

void walk_names(const Expr& expr, const NameVisitor& visit) {
  if (const auto* name = std::get_if<Name>(&expr.node)) return visit(name->name, false, expr.line);
  for_each_part(expr, [&](const Expr& part) { walk_names(part, visit); });
}

void walk_names(const Target& target, const NameVisitor& visit) {
  if (target.kind == Target::Kind::kName) return visit(target.name, true, target.line);
  if (target.kind == Target::Kind::kAttribute) return visit(target.name, false, target.line);
  for (const Target& item : target.items) walk_names(item, visit);
}

bool reads_name(const Body& body, std::string_view name) {
  bool found = false;
  walk_names(body, [&](const std::string& other, bool is_store, int /*line*/) {
    found = found || (!is_store && other == name);
  });
  return found;
}

}  // namespace tern::text::jinja
