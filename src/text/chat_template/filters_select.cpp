// Filters that call another filter or a test for every item.
#include <algorithm>
#include <array>

#include "text/chat_template/attribute_path.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/filters.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/print.h"
#include "text/chat_template/text_functions.h"

namespace tern::text::jinja {
namespace {

// A named filter or test with its further arguments, as map and select take them.
class Callback {
 public:
  Callback(Runtime& runtime, const Bound& bound, std::size_t name_at, bool is_filter)
      : runtime_(runtime) {
    const Arguments& raw = bound.raw();
    if (raw.positional.size() <= name_at) return;
    const Value& name = raw.positional[name_at];
    const std::string_view text = name.is_string() ? name.text() : std::string_view();
    row_ = is_filter ? find_filter(text) : find_test(text);
    if (row_ == nullptr) {
      TextBuilder shown(nullptr);
      append_str(shown, name.depth() == 0 ? name : Value::string("?"));
      raise(FaultKind::kRuntime, "No {} named '{}'.", is_filter ? "filter" : "test", shown.text());
    }
    runtime.budget.items(raw.positional.size());
    arguments_.positional.assign(raw.positional.begin() + static_cast<std::ptrdiff_t>(name_at + 1),
                                 raw.positional.end());
    arguments_.named = raw.named;
  }
  [[nodiscard]] bool named() const { return row_ != nullptr; }
  [[nodiscard]] Value call(const Value& item) const {
    // map('map', 'map', ...) nests without a bracket in the template.
    if (runtime_.callbacks >= kMaxCallDepth) {
      raise(FaultKind::kRecursion, "calls are nested deeper than {} levels", kMaxCallDepth);
    }
    ++runtime_.callbacks;
    Value result = call_native(runtime_, *row_, item, arguments_);
    --runtime_.callbacks;  // after a fault nothing is called any more
    return result;
  }

 private:
  Runtime& runtime_;
  const NativeRow* row_ = nullptr;
  Arguments arguments_;
};

Value map(Runtime& runtime, const Value& subject, const Bound& bound) {
  const Arguments& raw = bound.raw();
  const Value* by_attribute = nullptr;
  const Value* otherwise = nullptr;
  for (const auto& [name, value] : raw.named) {
    if (name == "attribute") by_attribute = &value;
    if (name == "default") otherwise = &value;
  }
  std::vector<Value> results;
  if (!truth(subject)) return make_generator(runtime, {});
  if (raw.positional.empty() && by_attribute != nullptr) {
    if (raw.named.size() > (otherwise != nullptr ? 2u : 1u)) {
      raise(FaultKind::kFilterArgument, "map got an unexpected keyword argument");
    }
    if (otherwise != nullptr && otherwise->is_none()) otherwise = nullptr;
    const AttributePath path(runtime, by_attribute);
    for (Value& item : to_vector(subject, &runtime.budget)) {
      results.push_back(path.get(std::move(item), otherwise));
    }
    return make_generator(runtime, std::move(results));
  }
  if (raw.positional.empty()) {
    raise(FaultKind::kFilterArgument, "map requires a filter argument");
  }
  const Callback filter(runtime, bound, 0, true);
  for (const Value& item : to_vector(subject, &runtime.budget)) {
    runtime.budget.step();
    results.push_back(filter.call(item));
  }
  return make_generator(runtime, std::move(results));
}

template <bool keeps, bool by_attribute>
Value select(Runtime& runtime, const Value& subject, const Bound& bound) {
  if (!truth(subject)) return make_generator(runtime, {});
  const Arguments& raw = bound.raw();
  if (by_attribute && raw.positional.empty()) {
    raise(FaultKind::kFilterArgument, "Missing parameter for attribute name");
  }
  const AttributePath path(runtime, by_attribute ? &raw.positional.front() : nullptr);
  const Callback test(runtime, bound, by_attribute ? 1 : 0, false);
  std::vector<Value> results;
  for (Value& item : to_vector(subject, &runtime.budget)) {
    runtime.budget.step();
    const Value value = path.get(item);
    const bool passed = truth(test.named() ? test.call(value) : value);
    if (passed == keeps) results.push_back(std::move(item));
  }
  return make_generator(runtime, std::move(results));
}

constexpr std::array kFilters = {
    NativeRow{"map", map, kVariadic, {}},
    NativeRow{"reject", select<false, false>, kVariadic, {}},
    NativeRow{"rejectattr", select<false, true>, kVariadic, {}},
    NativeRow{"select", select<true, false>, kVariadic, {}},
    NativeRow{"selectattr", select<true, true>, kVariadic, {}},
};
static_assert(is_sorted(kFilters));

}  // namespace

std::span<const NativeRow> select_filters() { return kFilters; }

}  // namespace tern::text::jinja
