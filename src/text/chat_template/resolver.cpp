// Decides once, before any rendering, which variable every name means.
#include "text/chat_template/resolver.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "text/chat_template/walk.h"

namespace tern::text::jinja {
namespace {

struct FunctionScope {
  FunctionScope* parent;
  Function* out;
  std::uint32_t depth;
};

// What a name holds when its scope is entered.
struct Load {
  enum class From : std::uint8_t { kParameter, kContext, kOuter, kNothing };
  From from = From::kNothing;
  Reference outer;
};

// The names of a scope that one branch of an `if` has seen; the branches join their layers to the
// one below.
struct Layer {
  std::map<std::string_view, Load> loads;
  std::set<std::string_view> stores;
};

struct Variables {
  Variables* parent;
  FunctionScope* function;
  std::vector<Layer> layers = std::vector<Layer>(1);
  std::map<std::string_view, std::uint32_t> slots{};

  [[nodiscard]] const Load* own(std::string_view name) const {
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      const auto found = layer->loads.find(name);
      if (found != layer->loads.end()) return &found->second;
    }
    return nullptr;
  }
  [[nodiscard]] bool stored(std::string_view name) const {
    return std::any_of(layers.begin(), layers.end(),
                       [&](const Layer& layer) { return layer.stores.contains(name); });
  }
  std::uint32_t slot(std::string_view name) {
    const auto [at, is_new] = slots.try_emplace(name, function->out->slots);
    if (is_new) ++function->out->slots;
    return at->second;
  }
};

class Resolver {
 public:
  explicit Resolver(Template& tree) : tree_(tree) {}

  void run() {
    FunctionScope function{nullptr, &tree_.function, 0};
    Variables variables{nullptr, &function};
    analyze(tree_.body, variables);
    finish(variables, tree_.function.entry);
    bind(tree_.body, variables);
  }

 private:
  // --- which names a scope has ---------------------------------------------------------------

  std::uint32_t context_index(std::string_view name) {
    const auto [at, is_new] =
        contexts_.try_emplace(std::string(name), static_cast<std::uint32_t>(contexts_.size()));
    if (is_new) tree_.context_names.emplace_back(name);
    return at->second;
  }

  // The variable of that name in the scope or around it, as code of `from` reaches it.
  std::optional<Reference> find(Variables* scope, std::string_view name,
                                const FunctionScope& from) {
    for (; scope != nullptr; scope = scope->parent) {
      const Load* load = scope->own(name);
      if (load == nullptr) continue;
      if (load->from == Load::From::kContext && !scope->stored(name)) {
        return Reference{Reference::Where::kContext, 0, context_index(name)};
      }
      return Reference{Reference::Where::kSlot, from.depth - scope->function->depth,
                       scope->slot(name)};
    }
    return std::nullopt;
  }

  bool known(Variables* scope, std::string_view name) {
    for (; scope != nullptr; scope = scope->parent) {
      if (scope->own(name) != nullptr) return true;
    }
    return false;
  }

  void declare(Variables& scope, std::string_view name) {
    scope.layers.back().stores.insert(name);
    scope.layers.back().loads[name] = {Load::From::kParameter, {}};
  }

  void load(Variables& scope, std::string_view name) {
    if (!known(&scope, name)) scope.layers.back().loads[name] = {Load::From::kContext, {}};
  }

  void store(Variables& scope, std::string_view name) {
    scope.layers.back().stores.insert(name);
    if (scope.own(name) != nullptr) return;
    if (const auto outer = find(scope.parent, name, *scope.function)) {
      scope.layers.back().loads[name] = {Load::From::kOuter, *outer};
    } else {
      scope.layers.back().loads[name] = {Load::From::kNothing, {}};
    }
  }

  void analyze(const Expr& expr, Variables& scope) {
    walk_names(expr, [&](const std::string& name, bool, int) { load(scope, name); });
  }
  void analyze_filter(const Postfix& chain, Variables& scope) {
    for_each_operand(chain, [&](const Expr& expr) { analyze(expr, scope); });
  }

  void analyze(const Target& target, Variables& scope) {
    walk_names(target, [&](const std::string& name, bool is_store, int) {
      is_store ? store(scope, name) : load(scope, name);
    });
  }

  void declare(const Target& target, Variables& scope) {
    walk_names(target, [&](const std::string& name, bool, int) { declare(scope, name); });
  }

  void analyze(const Body& body, Variables& scope) {
    for (const Stmt& statement : body) analyze(statement, scope);
  }

  void analyze(const Stmt& statement, Variables& scope) {
    if (const auto* output = std::get_if<OutputStmt>(&statement.node)) {
      for (const Expr& expr : output->expressions) analyze(expr, scope);
    } else if (const auto* condition = std::get_if<IfStmt>(&statement.node)) {
      analyze_if(*condition, scope);
    } else if (const auto* loop = std::get_if<ForStmt>(&statement.node)) {
      analyze(loop->node->iterable, scope);
    } else if (const auto* set = std::get_if<SetStmt>(&statement.node)) {
      analyze(set->value, scope);
      analyze(set->target, scope);
    } else if (const auto* block = std::get_if<SetBlockStmt>(&statement.node)) {
      analyze(block->target, scope);
    } else if (const auto* macro = std::get_if<MacroStmt>(&statement.node)) {
      store(scope, macro->macro->name);
    } else if (const auto* call = std::get_if<CallBlockStmt>(&statement.node)) {
      analyze(call->call, scope);
    } else if (const auto* filter = std::get_if<FilterBlockStmt>(&statement.node)) {
      analyze_filter(filter->filter, scope);
    } else if (const auto* with = std::get_if<WithStmt>(&statement.node)) {
      for (const Expr& expr : with->values) analyze(expr, scope);
    }
  }

  Layer branch(Variables& scope, const std::function<void()>& visit) {
    scope.layers.emplace_back();
    visit();
    Layer layer = std::move(scope.layers.back());
    scope.layers.pop_back();
    return layer;
  }

  // The reference sees three branches: the body, all elifs together (each of them an `if` of its
  // own), and the else part, which is empty where it is not written.
  void analyze_if(const IfStmt& statement, Variables& scope) {
    analyze(statement.tests.front(), scope);
    Layer first = branch(scope, [&] { analyze(statement.bodies.front(), scope); });
    Layer others = branch(scope, [&] {
      for (std::size_t i = 1; i < statement.tests.size(); ++i) {
        analyze(statement.tests[i], scope);
        Layer body = branch(scope, [&] { analyze(statement.bodies[i], scope); });
        join(scope, {std::move(body), Layer{}, Layer{}});
      }
    });
    Layer otherwise = branch(scope, [&] { analyze(statement.otherwise, scope); });
    join(scope, {std::move(first), std::move(others), std::move(otherwise)});
  }

  void join(Variables& scope, const std::array<Layer, 3>& branches) {
    std::map<std::string_view, std::size_t> counts;
    for (const Layer& layer : branches) {
      for (const std::string_view name : layer.stores) {
        if (!scope.stored(name)) ++counts[name];
      }
    }
    Layer& below = scope.layers.back();
    for (const Layer& layer : branches) {
      for (const auto& [name, load] : layer.loads) below.loads[name] = load;
      below.stores.insert(layer.stores.begin(), layer.stores.end());
    }
    // Set on some ways only: on the others the variable is the outer one.
    for (const auto& [name, count] : counts) {
      if (count == branches.size()) continue;
      if (const auto outer = find(scope.parent, name, *scope.function)) {
        below.loads[name] = {Load::From::kOuter, *outer};
      } else {
        below.loads[name] = {Load::From::kContext, {}};
      }
    }
  }

  void finish(Variables& scope, Scope& out) {
    for (const auto& [name, load] : scope.layers.front().loads) {
      switch (load.from) {
        case Load::From::kParameter:
          break;
        case Load::From::kContext:
          if (!scope.stored(name)) break;
          out.inits.push_back({scope.slot(name),
                               ScopeInit::From::kContext,
                               {Reference::Where::kContext, 0, context_index(name)}});
          break;
        case Load::From::kOuter:
          out.inits.push_back({scope.slot(name), ScopeInit::From::kOuter, load.outer});
          break;
        case Load::From::kNothing:
          out.inits.push_back({scope.slot(name), ScopeInit::From::kNothing, {}});
          break;
      }
    }
  }

  // --- references ------------------------------------------------------------------------------

  Reference reference(Variables& scope, std::string_view name) {
    if (const auto found = find(&scope, name, *scope.function)) return *found;
    return {Reference::Where::kContext, 0, context_index(name)};
  }

  void bind(const Expr& expr, Variables& scope) {
    // The tree is ours; the walkers are shared with readers and so see it as const.
    auto& node = const_cast<Expr&>(expr).node;
    if (auto* name = std::get_if<Name>(&node)) {
      name->reference = reference(scope, name->name);
      return;
    }
    for_each_part(expr, [&](const Expr& part) { bind(part, scope); });
  }
  void bind_filter(const Postfix& chain, Variables& scope) {
    for_each_operand(chain, [&](const Expr& expr) { bind(expr, scope); });
  }

  void bind(Target& target, Variables& scope) {
    if (target.kind != Target::Kind::kTuple) target.reference = reference(scope, target.name);
    for (Target& item : target.items) bind(item, scope);
  }

  void bind(Body& body, Variables& scope) {
    for (Stmt& statement : body) bind(statement, scope);
  }

  void bind(Stmt& statement, Variables& scope) {
    if (auto* output = std::get_if<OutputStmt>(&statement.node)) {
      for (const Expr& expr : output->expressions) bind(expr, scope);
    } else if (auto* condition = std::get_if<IfStmt>(&statement.node)) {
      for (const Expr& expr : condition->tests) bind(expr, scope);
      for (Body& body : condition->bodies) bind(body, scope);
      bind(condition->otherwise, scope);
    } else if (auto* loop = std::get_if<ForStmt>(&statement.node)) {
      bind_for(*loop->node, scope);
    } else if (auto* set = std::get_if<SetStmt>(&statement.node)) {
      bind(set->value, scope);
      bind(set->target, scope);
    } else if (auto* block = std::get_if<SetBlockStmt>(&statement.node)) {
      bind(block->target, scope);
      bind_block(block->body, block->filter, block->scope, scope);
    } else if (auto* macro = std::get_if<MacroStmt>(&statement.node)) {
      macro->reference = reference(scope, macro->macro->name);
      capture(scope);
      bind_macro(*macro->macro, scope);
    } else if (auto* call = std::get_if<CallBlockStmt>(&statement.node)) {
      bind(call->call, scope);
      capture(scope);
      bind_macro(*call->macro, scope);
    } else if (auto* filter = std::get_if<FilterBlockStmt>(&statement.node)) {
      bind_block(filter->body, filter->filter, filter->scope, scope);
    } else if (auto* with = std::get_if<WithStmt>(&statement.node)) {
      bind_with(*with, scope);
    } else if (auto* generation = std::get_if<GenerationStmt>(&statement.node)) {
      bind_macro(*generation->macro, scope);
    }
  }

  // A macro holds on to the variables around it, and those to theirs.
  static void capture(Variables& scope) {
    for (FunctionScope* f = scope.function; f != nullptr; f = f->parent) f->out->captured = true;
  }

  void bind_block(Body& body, const Postfix& filter, Scope& out, Variables& outer) {
    Variables scope{&outer, outer.function};
    analyze(body, scope);
    analyze_filter(filter, scope);
    finish(scope, out);
    bind(body, scope);
    bind_filter(filter, scope);
  }

  void bind_with(WithStmt& statement, Variables& outer) {
    for (const Expr& expr : statement.values) bind(expr, outer);
    Variables scope{&outer, outer.function};
    for (const Target& target : statement.targets) declare(target, scope);
    analyze(statement.body, scope);
    finish(scope, statement.scope);
    for (Target& target : statement.targets) bind(target, scope);
    bind(statement.body, scope);
  }

  void bind_for(ForNode& loop, Variables& outer) {
    refuse_loop_stores(loop);
    bind(loop.iterable, outer);
    FunctionScope own{outer.function, &loop.function, outer.function->depth + 1};
    FunctionScope* function = loop.recursive ? &own : outer.function;
    loop.uses_loop = loop.recursive || reads_name(loop.body, "loop");

    Variables scope{&outer, function};
    if (loop.uses_loop) declare(scope, "loop");
    declare(loop.target, scope);
    analyze(loop.body, scope);
    finish(scope, loop.body_scope);
    bind(loop.target, scope);
    if (loop.uses_loop) loop.loop = reference(scope, "loop");
    bind(loop.body, scope);

    if (loop.test) {
      Variables test{&outer, function};
      declare(loop.test_target, test);
      analyze(*loop.test, test);
      finish(test, loop.test_scope);
      bind(loop.test_target, test);
      bind(*loop.test, test);
    }
    Variables otherwise{&outer, function};
    analyze(loop.otherwise, otherwise);
    finish(otherwise, loop.otherwise_scope);
    bind(loop.otherwise, otherwise);
  }

  static void refuse_loop_stores(const ForNode& loop) {
    const NameVisitor visit = [](const std::string& name, bool is_store, int line) {
      if (is_store && name == "loop") {
        throw TemplateFault(FaultKind::kSyntax,
                            "Can't assign to special loop variable in for-loop target", line);
      }
    };
    walk_names(loop.target, visit);
    // Inner loops look at their own bodies, so a body is walked once per loop around it.
    walk_names(loop.body, visit);
  }

  void bind_macro(MacroNode& macro, Variables& outer) {
    FunctionScope function{outer.function, &macro.function, outer.function->depth + 1};
    Variables scope{&outer, &function};
    const auto is_parameter = [&](std::string_view name) {
      return std::find(macro.parameters.begin(), macro.parameters.end(), name) !=
             macro.parameters.end();
    };
    for (const std::string& name : macro.parameters) declare(scope, name);
    const auto special = [&](std::string_view name) {
      const bool used = !is_parameter(name) && reads_name(macro.body, name);
      if (used) declare(scope, name);
      return used;
    };
    macro.uses_caller = special("caller");
    macro.uses_varargs = special("varargs");
    macro.uses_kwargs = special("kwargs");
    for (const Expr& expr : macro.defaults) analyze(expr, scope);
    analyze(macro.body, scope);
    finish(scope, macro.function.entry);

    for (const std::string& name : macro.parameters) {
      macro.parameter_slots.push_back(reference(scope, name));
    }
    if (macro.uses_caller) macro.caller = reference(scope, "caller");
    if (macro.uses_varargs) macro.varargs = reference(scope, "varargs");
    if (macro.uses_kwargs) macro.kwargs = reference(scope, "kwargs");
    for (const Expr& expr : macro.defaults) bind(expr, scope);
    bind(macro.body, scope);
  }

  Template& tree_;
  std::map<std::string, std::uint32_t, std::less<>> contexts_;
};

}  // namespace

void resolve_names(Template& tree) { Resolver(tree).run(); }

}  // namespace tern::text::jinja
