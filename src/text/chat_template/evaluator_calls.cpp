// Renders a resolved template: variables, calls of macros, functions and recursive loops.
#include "text/chat_template/compare.h"
#include "text/chat_template/evaluator.h"
#include "text/chat_template/print.h"

namespace tern::text::jinja {

std::string_view macro_name(const Value& macro) { return macro.as<MacroData>().node.name; }

Evaluator::Evaluator(const Template& tree, Budget& budget, const Clock& now)
    : tree_(tree), runtime_{budget, now, {}, 0} {}

Evaluator::~Evaluator() {
  // Variables, namespaces and macros may refer to each other in circles: empty them one by one
  // while all of them still stand.
  for (const auto& frame : kept_) {
    runtime_.budget.release(frame->slots.size() * sizeof(Value));
    frame->slots.clear();
  }
  for (const auto& space : runtime_.namespaces) {
    space->attributes.clear();
    runtime_.budget.release(sizeof(NamespaceData) + space->held);
  }
}

void Evaluator::render(const Dict& variables, TextBuilder& out) {
  context_.clear();
  context_.reserve(tree_.context_names.size());
  for (const std::string& name : tree_.context_names) {
    if (const Value* given = variables.find(name)) {
      context_.push_back(*given);
    } else if (const NativeRow* row = find_global(name)) {
      context_.push_back(
          Value::object(Kind::kFunction, std::make_shared<FunctionData>(nullptr, *row, Value())));
    } else {
      context_.emplace_back();
    }
  }
  out_ = &out;
  const Call call(*this, tree_.function, nullptr);
  enter(tree_.function.entry);
  (void)exec(tree_.body);
}

Evaluator::Call::Call(Evaluator& evaluator, const Function& function, Frame* parent)
    : evaluator_(evaluator),
      caller_(evaluator.frame_),
      held_(function.slots * sizeof(Value)),
      kept_(function.captured) {
  if (evaluator.calls_ >= kMaxCallDepth + 1) {  // the template itself is the outermost call
    raise(FaultKind::kRecursion, "calls are nested deeper than {} levels", kMaxCallDepth);
  }
  evaluator.runtime_.budget.hold(held_);
  frame_ = std::make_unique<Frame>(Frame{std::vector<Value>(function.slots), parent});
  evaluator.frame_ = frame_.get();
  if (kept_) evaluator.kept_.push_back(std::move(frame_));
  ++evaluator.calls_;
}

Evaluator::Call::~Call() {
  --evaluator_.calls_;
  evaluator_.frame_ = caller_;
  if (!kept_) evaluator_.runtime_.budget.release(held_);
}

const Value& Evaluator::load(const Reference& reference) const {
  if (reference.where == Reference::Where::kContext) return context_[reference.index];
  const Frame* frame = frame_;
  for (std::uint32_t i = 0; i < reference.hops; ++i) frame = frame->parent;
  return frame->slots[reference.index];
}

void Evaluator::store(const Reference& reference, Value value) {
  frame_->slots[reference.index] = std::move(value);  // a scope sets only what is its own
}

void Evaluator::enter(const Scope& scope) {
  for (const ScopeInit& init : scope.inits) {
    Value value = init.from == ScopeInit::From::kNothing ? Value() : load(init.outer);
    frame_->slots[init.slot] = std::move(value);
  }
}

Value Evaluator::call(const Value& callee, const Arguments& arguments) {
  switch (callee.kind()) {
    case Kind::kFunction: {
      const auto& function = callee.as<FunctionData>();
      return call_native(runtime_, function.row, function.self, arguments);
    }
    case Kind::kMacro:
      return call_macro(callee.as<MacroData>(), arguments);
    case Kind::kLoop: {
      auto& loop = callee.as<LoopData>();
      if (loop.recursive == nullptr) {
        raise(FaultKind::kType,
              "The loop must have the 'recursive' marker to be called recursively.");
      }
      if (arguments.positional.size() != 1 || !arguments.named.empty()) {
        raise(FaultKind::kType, "loop() takes one argument");
      }
      return call_loop(*loop.recursive, arguments.positional.front(), loop.depth0 + 1, loop.frame);
    }
    case Kind::kJoiner: {
      auto& joiner = callee.as<JoinerData>();
      const bool was_used = joiner.used;
      joiner.used = true;
      return was_used ? joiner.separator : Value::string("", Origin::kTemplate);
    }
    default:
      require_defined(callee);
      raise(FaultKind::kType, "'{}' object is not callable", type_name(callee));
  }
}

Value Evaluator::call_macro(const MacroData& macro, const Arguments& arguments) {
  const MacroNode& node = macro.node;
  const Deeper deeper(*this);
  const Call call(*this, node.function, macro.frame);
  Capture capture(*this);
  pass_arguments(node, arguments);
  (void)exec(node.body);
  return capture.finish();
}

void Evaluator::pass_arguments(const MacroNode& macro, const Arguments& arguments) {
  std::vector<bool> used(arguments.named.size(), false);
  const std::size_t count = macro.parameters.size();
  for (std::size_t i = 0; i < count; ++i) {
    Value value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else {
      for (std::size_t k = 0; k < arguments.named.size(); ++k) {
        if (arguments.named[k].first != macro.parameters[i]) continue;
        value = arguments.named[k].second;
        used[k] = true;
      }
    }
    store(macro.parameter_slots[i], std::move(value));
  }
  pass_extra_arguments(macro, arguments, used);
  enter(macro.function.entry);
  // Defaults may use the parameters before them, so they come after all that was passed.
  const std::size_t first_default = count - macro.defaults.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!load(macro.parameter_slots[i]).is_missing()) continue;
    Value value = i >= first_default
                      ? eval(macro.defaults[i - first_default])
                      : Value::undefined(fmt::format("parameter {} was not provided",
                                                     quote_short(macro.parameters[i])),
                                         FaultKind::kUndefined, &runtime_.budget);
    store(macro.parameter_slots[i], std::move(value));
  }
}

// What has no parameter of its own: caller, varargs, kwargs, or an error.
void Evaluator::pass_extra_arguments(const MacroNode& macro, const Arguments& arguments,
                                     const std::vector<bool>& used) {
  Dict rest;
  Value caller = Value::undefined("No caller defined");
  for (std::size_t k = 0; k < arguments.named.size(); ++k) {
    if (used[k]) continue;
    const auto& [name, value] = arguments.named[k];
    if (name == "caller" && macro.uses_caller) {
      if (!value.is_none()) caller = value;
    } else if (macro.uses_kwargs) {
      rest.set(make_text(name, Origin::kTemplate, &runtime_.budget), value, &runtime_.budget);
    } else {
      raise(FaultKind::kType, "macro {} takes no keyword argument {}", quote(macro.name),
            quote(name));
    }
  }
  const std::size_t count = macro.parameters.size();
  std::vector<Value> more;
  if (arguments.positional.size() > count) {
    if (!macro.uses_varargs) {
      raise(FaultKind::kType, "macro {} takes not more than {} argument(s)", quote(macro.name),
            count);
    }
    more.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count),
                arguments.positional.end());
  }
  if (macro.uses_caller) store(macro.caller, std::move(caller));
  if (macro.uses_varargs) store(macro.varargs, Value::tuple(std::move(more), &runtime_.budget));
  if (macro.uses_kwargs) store(macro.kwargs, make_dict(std::move(rest), &runtime_.budget));
}

Value Evaluator::call_loop(const ForNode& loop, Value iterable, std::int64_t depth, Frame* parent) {
  const Deeper deeper(*this);
  const Call call(*this, loop.function, parent);
  Capture capture(*this);
  (void)run_loop(loop, std::move(iterable), depth, parent);
  return capture.finish();
}

}  // namespace tern::text::jinja
