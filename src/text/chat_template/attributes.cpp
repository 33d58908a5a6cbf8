// x.name and x[key]: methods, then data for the first; data, then methods for the second.
#include <algorithm>

#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/native.h"
#include "text/chat_template/objects.h"
#include "text/chat_template/print.h"

namespace tern::text::jinja {
namespace {

Value unsafe(Runtime& runtime, const Value& subject, std::string_view name) {
  return Value::undefined(fmt::format("access to attribute {} of '{}' object is unsafe.",
                                      quote_short(name), type_name(subject)),
                          FaultKind::kSecurity, &runtime.budget);
}

std::string described(const Value& subject) {
  if (subject.is_none()) return "None";
  return fmt::format("{} object", type_name(subject));
}

Value no_attribute(Runtime& runtime, const Value& subject, std::string_view name) {
  return Value::undefined(
      fmt::format("'{}' has no attribute {}", described(subject), quote_short(name)),
      FaultKind::kUndefined, &runtime.budget);
}

Value no_element(Runtime& runtime, const Value& subject, const Value& key) {
  TextBuilder text(&runtime.budget);
  // A namespace has no depth of its own, but may hold anything.
  if (key.depth() == 0 && !key.is(Kind::kNamespace)) {
    append_repr(text, key);
  } else {
    text.append(type_name(key));
  }
  return Value::undefined(
      fmt::format("{} has no element {}", described(subject), shortened(text.text())),
      FaultKind::kUndefined, &runtime.budget);
}

Value bound_method(Runtime& runtime, const Value& subject, const NativeRow& row) {
  return Value::object(Kind::kFunction,
                       std::make_shared<FunctionData>(&runtime.budget, row, subject));
}

// What Python finds on the object itself: a method, or a property of the few kinds that have some.
bool own_attribute(Runtime& runtime, const Value& subject, std::string_view name, Value& result) {
  if (subject.is(Kind::kNamespace)) {
    const Value* found = subject.space().attributes.find(name, &runtime.budget);
    if (found != nullptr) result = *found;
    return found != nullptr;
  }
  bool changes_object = false;
  if (const NativeRow* row = find_method(subject, name, changes_object)) {
    result = bound_method(runtime, subject, *row);
    return true;
  }
  if (changes_object) {
    result = unsafe(runtime, subject, name);
    return true;
  }
  if (subject.is(Kind::kLoop)) {
    bool found = false;
    result = subject.as<LoopData>().attribute(name, found);
    return found;
  }
  if (subject.is(Kind::kMacro) && name == "name") {
    result = Value::string(std::string(macro_name(subject)), Origin::kTemplate);
    return true;
  }
  if (subject.is(Kind::kCycler) && name == "current") {
    const auto& cycler = subject.as<CyclerData>();
    result = cycler.items[cycler.position];
    return true;
  }
  if (subject.is(Kind::kRange)) {
    const auto& range = subject.as<RangeData>();
    if (name == "start") result = Value::integer(range.start);
    if (name == "stop") result = Value::integer(range.stop);
    if (name == "step") result = Value::integer(range.step);
    return !result.is_missing();
  }
  return false;
}

Value text_item(Runtime& runtime, const Value& subject, std::int64_t index) {
  const StringData& text = subject.string();
  const auto length = static_cast<std::int64_t>(text.length);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return Value();
  if (text.ascii()) {
    const auto at = static_cast<std::size_t>(index);
    return slice_text(text, at, at + 1, &runtime.budget);
  }
  runtime.budget.search(text.text.size());
  const std::size_t at = byte_position(text.text, static_cast<std::size_t>(index));
  return slice_text(text, at, at + code_point_at(text.text, at).length, &runtime.budget);
}

Value sequence_item(Runtime& runtime, const Value& subject, std::int64_t index) {
  if (subject.is_string()) return text_item(runtime, subject, index);
  const std::int64_t length = length_of(subject);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return Value();
  const auto at = static_cast<std::size_t>(index);
  return subject.is(Kind::kRange) ? range_item(subject.as<RangeData>(), at) : subject.items()[at];
}

// subject[key] without fallbacks; missing when there is nothing.
Value plain_item(Runtime& runtime, const Value& subject, const Value& key) {
  switch (subject.kind()) {
    case Kind::kDict: {
      if (!is_hashable(key)) return Value();
      const Value* found = subject.dict().dict.find(key, &runtime.budget);
      return found != nullptr ? *found : Value();
    }
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      if (!key.is_integer()) return Value();
      return sequence_item(runtime, subject, key.as_integer());
    default:
      return Value();
  }
}

bool is_private(std::string_view name) { return name.starts_with("__"); }

}  // namespace

Value get_attribute(Runtime& runtime, const Value& subject, std::string_view name) {
  require_defined(subject);
  if (is_private(name)) return unsafe(runtime, subject, name);
  Value result;
  if (own_attribute(runtime, subject, name, result)) return result;
  if (subject.is_dict()) {
    if (const Value* found = subject.dict().dict.find(name, &runtime.budget)) return *found;
  }
  // groupby gives pairs whose parts have names.
  if (subject.is(Kind::kTuple) && subject.items().size() == 2) {
    if (name == "grouper") return subject.items()[0];
    if (name == "list") return subject.items()[1];
  }
  return no_attribute(runtime, subject, name);
}

Value get_item(Runtime& runtime, const Value& subject, const Value& key) {
  require_defined(subject);
  Value result = plain_item(runtime, subject, key);
  if (!result.is_missing()) return result;
  if (key.is_string()) {
    if (is_private(key.text())) return unsafe(runtime, subject, key.text());
    if (own_attribute(runtime, subject, key.text(), result)) return result;
    return no_attribute(runtime, subject, key.text());
  }
  return no_element(runtime, subject, key);
}

}  // namespace tern::text::jinja
