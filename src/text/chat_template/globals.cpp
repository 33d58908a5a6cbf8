// The global functions of chat templates.
#include "text/chat_template/compare.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/native.h"
#include "text/chat_template/operators.h"
#include "text/chat_template/print.h"
#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {
namespace {

// dict(mapping or pairs, name=value, ...)
Dict collect(Runtime& runtime, const Arguments& arguments, std::string_view function) {
  Dict dict;
  if (arguments.positional.size() > 1) {
    raise(FaultKind::kType, "{} expected at most 1 argument, got {}", function,
          arguments.positional.size());
  }
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional.front();
    if (from.is_dict()) {
      for (const Dict::Entry& entry : from.dict().dict.entries()) {
        runtime.budget.step();
        dict.set(entry.key, entry.value, &runtime.budget);
      }
    } else {
      for (const Value& pair : to_vector(from, &runtime.budget)) {
        const std::vector<Value> parts = to_vector(pair, &runtime.budget);
        if (parts.size() != 2) {
          raise(FaultKind::kValue,
                "dictionary update sequence element has length {}; 2 is required", parts.size());
        }
        dict.set(parts[0], parts[1], &runtime.budget);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) {
    runtime.budget.step();
    dict.set(make_text(name, Origin::kTemplate, &runtime.budget), value, &runtime.budget);
  }
  return dict;
}

Value make_cycler(Runtime& runtime, const Value& /*self*/, const Bound& arguments) {
  if (arguments.raw().positional.empty()) {
    raise(FaultKind::kRuntime, "at least one item has to be provided");
  }
  return Value::object(Kind::kCycler,
                       std::make_shared<CyclerData>(&runtime.budget, arguments.raw().positional));
}

Value make_dictionary(Runtime& runtime, const Value& /*self*/, const Bound& arguments) {
  return make_dict(collect(runtime, arguments.raw(), "dict"), &runtime.budget);
}

Value make_joiner(Runtime& runtime, const Value& /*self*/, const Bound& arguments) {
  Value separator =
      arguments[0] != nullptr ? *arguments[0] : Value::string(", ", Origin::kTemplate);
  return Value::object(Kind::kJoiner,
                       std::make_shared<JoinerData>(&runtime.budget, std::move(separator)));
}

Value make_namespace(Runtime& runtime, const Value& /*self*/, const Bound& arguments) {
  auto data = std::make_unique<NamespaceData>();
  data->attributes = collect(runtime, arguments.raw(), "namespace");
  for (const Dict::Entry& entry : data->attributes.entries()) {
    if (entry.key.is_string()) require_namespace_name(entry.key.text());
  }
  const std::size_t entries = data->attributes.size() * kBytesPerEntry;
  runtime.budget.hold(sizeof(NamespaceData) + entries);
  data->held = entries;
  runtime.namespaces.push_back(std::move(data));
  return Value::space(runtime.namespaces.back().get());
}

Value raise_exception(Runtime& runtime, const Value& /*self*/, const Bound& arguments) {
  TextBuilder text(&runtime.budget);
  append_str(text, *arguments[0]);
  throw TemplateFault(FaultKind::kRaised, text.take());
}

Value make_range(Runtime& runtime, const Value& /*self*/, const Bound& arguments) {
  const std::vector<Value>& given = arguments.raw().positional;
  if (given.empty() || given.size() > 3 || !arguments.raw().named.empty()) {
    raise(FaultKind::kType, "range expected 1 to 3 arguments, got {}", given.size());
  }
  const std::int64_t first = to_index(given[0]);
  const std::int64_t start = given.size() == 1 ? 0 : first;
  const std::int64_t stop = given.size() == 1 ? first : to_index(given[1]);
  const std::int64_t step = given.size() == 3 ? to_index(given[2]) : 1;
  if (step == 0) raise(FaultKind::kValue, "range() arg 3 must not be zero");
  auto range = std::make_shared<RangeData>(&runtime.budget, start, stop, step);
  if (range->count > kMaxRange) {
    raise(FaultKind::kOverflow,
          "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange);
  }
  return Value::object(Kind::kRange, std::move(range));
}

Value strftime_now(Runtime& runtime, const Value& /*self*/, const Bound& arguments) {
  const Value& format = *arguments[0];
  if (!format.is_string()) {
    raise(FaultKind::kType, "strftime_now() argument must be str, not {}", type_name(format));
  }
  runtime.budget.items(format.text().size());
  return make_text(format_time(runtime.now, format.text()), overall_origin(format.string()),
                   &runtime.budget);
}

constexpr std::array kGlobals = {
    NativeRow{"cycler", make_cycler, kVariadic, {}},
    NativeRow{"dict", make_dictionary, kVariadic, {}},
    NativeRow{"joiner", make_joiner, 0, {"sep"}},
    NativeRow{"namespace", make_namespace, kVariadic, {}},
    NativeRow{"raise_exception", raise_exception, 1, {"message"}},
    NativeRow{"range", make_range, kVariadic, {}},
    NativeRow{"strftime_now", strftime_now, 1, {"format"}},
};
static_assert(is_sorted(kGlobals));

}  // namespace

void require_namespace_name(std::string_view name) {
  if (!name.starts_with('_')) return;
  raise(FaultKind::kSecurity,
        "Chat templates cannot store underscore-prefixed attributes on a namespace, but got {}. "
        "Please rename the attribute.",
        quote(name));
}

const NativeRow* find_global(std::string_view name) { return find_row(kGlobals, name); }

}  // namespace tern::text::jinja
