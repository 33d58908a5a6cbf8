// The methods of lists, dictionaries, ranges, loops and cyclers, and which kind has which.
#include <algorithm>
#include <array>

#include "text/chat_template/compare.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/methods_text.h"
#include "text/chat_template/objects.h"
#include "text/chat_template/operators.h"

namespace tern::text::jinja {
namespace {

Value count_item(Runtime& runtime, const Value& self, const Bound& arguments) {
  std::int64_t found = 0;
  Iteration walk(self, &runtime.budget);
  Value item;
  while (walk.next(item)) found += equals(item, *arguments[0], &runtime.budget) ? 1 : 0;
  return Value::integer(found);
}

Value index_of_item(Runtime& runtime, const Value& self, const Bound& arguments) {
  const std::int64_t length = length_of(self);
  const auto position = [&](std::size_t i, std::int64_t otherwise) {
    if (arguments[i] == nullptr) return otherwise;
    const std::int64_t at = to_index(*arguments[i]);
    return std::clamp<std::int64_t>(at < 0 ? (at < -length ? 0 : at + length) : at, 0, length);
  };
  const std::int64_t end = position(2, length);
  for (std::int64_t i = position(1, 0); i < end; ++i) {
    const Value& item = self.items()[static_cast<std::size_t>(i)];
    if (equals(item, *arguments[0], &runtime.budget)) return Value::integer(i);
  }
  raise(FaultKind::kValue, "the value is not in the {}", type_name(self));
}

Value itself(Runtime& /*runtime*/, const Value& self, const Bound& /*arguments*/) {
  return self;  // nothing can change it, so a copy is the same
}

Value get(Runtime& runtime, const Value& self, const Bound& arguments) {
  const Value* found = self.dict().dict.find(*arguments[0], &runtime.budget);
  if (found != nullptr) return *found;
  return arguments[1] != nullptr ? *arguments[1] : Value::none();
}

template <ViewKind kind>
Value view(Runtime& runtime, const Value& self, const Bound& /*arguments*/) {
  return Value::object(Kind::kView, std::make_shared<ViewData>(&runtime.budget, self, kind));
}

Value loop_cycle(Runtime& /*runtime*/, const Value& self, const Bound& arguments) {
  const std::vector<Value>& values = arguments.raw().positional;
  if (values.empty()) raise(FaultKind::kType, "no items for cycling given");
  const std::int64_t at = std::max<std::int64_t>(self.as<LoopData>().index0, 0);
  return values[static_cast<std::size_t>(at) % values.size()];
}

Value loop_changed(Runtime& runtime, const Value& self, const Bound& arguments) {
  auto& loop = self.as<LoopData>();
  Value now = Value::tuple(arguments.raw().positional, &runtime.budget);
  if (!loop.changed.is_missing() && equals(loop.changed, now, &runtime.budget)) {
    return Value::boolean(false);
  }
  // A loop that is over keeps nothing, so that loops cannot hold each other in a circle.
  if (loop.frame != nullptr) loop.changed = std::move(now);
  return Value::boolean(true);
}

Value cycler_next(Runtime& /*runtime*/, const Value& self, const Bound& /*arguments*/) {
  auto& cycler = self.as<CyclerData>();
  const Value item = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return item;
}

Value cycler_reset(Runtime& /*runtime*/, const Value& self, const Bound& /*arguments*/) {
  self.as<CyclerData>().position = 0;
  return Value::none();
}

constexpr std::array kListMethods = {
    NativeRow{"copy", itself, 0, {}},
    NativeRow{"count", count_item, 1, {"value"}},
    NativeRow{"index", index_of_item, 1, {"value", "start", "stop"}},
};
constexpr std::array kTupleMethods = {
    NativeRow{"count", count_item, 1, {"value"}},
    NativeRow{"index", index_of_item, 1, {"value", "start", "stop"}},
};
constexpr std::array kRangeMethods = {NativeRow{"count", count_item, 1, {"value"}}};
constexpr std::array kDictMethods = {
    NativeRow{"copy", itself, 0, {}},
    NativeRow{"get", get, 1, {"key", "default"}},
    NativeRow{"items", view<ViewKind::kItems>, 0, {}},
    NativeRow{"keys", view<ViewKind::kKeys>, 0, {}},
    NativeRow{"values", view<ViewKind::kValues>, 0, {}},
};
constexpr std::array kLoopMethods = {
    NativeRow{"changed", loop_changed, kVariadic, {}},
    NativeRow{"cycle", loop_cycle, kVariadic, {}},
};
constexpr std::array kCyclerMethods = {
    NativeRow{"next", cycler_next, 0, {}},
    NativeRow{"reset", cycler_reset, 0, {}},
};
static_assert(is_sorted(kListMethods) && is_sorted(kTupleMethods) && is_sorted(kDictMethods) &&
              is_sorted(kLoopMethods) && is_sorted(kCyclerMethods));

// Exist in Python, but change their object, which a chat template may not.
constexpr std::array<std::string_view, 8> kListChanges = {"append", "clear",  "extend",  "insert",
                                                          "pop",    "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 5> kDictChanges = {"clear", "pop", "popitem", "setdefault",
                                                          "update"};

}  // namespace

const NativeRow* find_method(const Value& subject, std::string_view name, bool& changes_object) {
  const auto among = [&](std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  switch (subject.kind()) {
    case Kind::kString:
      return find_row(text_methods(), name);
    case Kind::kList:
      changes_object = among(kListChanges);
      return find_row(kListMethods, name);
    case Kind::kTuple:
      return find_row(kTupleMethods, name);
    case Kind::kDict:
      changes_object = among(kDictChanges);
      return find_row(kDictMethods, name);
    case Kind::kRange:
      return find_row(kRangeMethods, name);
    case Kind::kLoop:
      return find_row(kLoopMethods, name);
    case Kind::kCycler:
      return find_row(kCyclerMethods, name);
    default:
      return nullptr;
  }
}

}  // namespace tern::text::jinja
