// Filters that order the items of a list, or find equal ones.
#include <algorithm>
#include <array>

#include "text/chat_template/attribute_path.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/filters.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/merge_sort.h"
#include "text/chat_template/print.h"
#include "text/chat_template/text_functions.h"

namespace tern::text::jinja {
namespace {

Value without_case(Runtime& runtime, const Value& value) {
  return value.is_string() ? lower(runtime, value.string()) : value;
}

// Items with what they are ordered by.
struct Keyed {
  Value key;
  Value item;
};

void sort_keyed(Runtime& runtime, std::vector<Keyed>& items, bool reverse) {
  // Reversed as in Python: equal items keep their order.
  if (reverse) std::reverse(items.begin(), items.end());
  merge_sort(items,
             [&](const Keyed& a, const Keyed& b) { return less(a.key, b.key, &runtime.budget); });
  if (reverse) std::reverse(items.begin(), items.end());
}

Value dict_sort(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const bool by_value =
      arguments[1] != nullptr && arguments[1]->is_string() && arguments[1]->text() == "value";
  if (arguments[1] != nullptr && !by_value &&
      !(arguments[1]->is_string() && arguments[1]->text() == "key")) {
    raise(FaultKind::kFilterArgument, "You can only sort by either \"key\" or \"value\"");
  }
  require_defined(subject);
  if (!subject.is_dict()) {
    raise(FaultKind::kUndefined, "'{} object' has no attribute 'items'", type_name(subject));
  }
  const bool with_case = arguments.flag(0, false);
  std::vector<Keyed> items;
  for (const Dict::Entry& entry : subject.dict().dict.entries()) {
    const Value& key = by_value ? entry.value : entry.key;
    items.push_back({with_case ? key : without_case(runtime, key),
                     Value::tuple({entry.key, entry.value}, &runtime.budget)});
  }
  sort_keyed(runtime, items, arguments.flag(2, false));
  std::vector<Value> pairs;
  pairs.reserve(items.size());
  for (Keyed& item : items) pairs.push_back(std::move(item.item));
  return Value::list(std::move(pairs), &runtime.budget);
}

Value group_by(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const AttributePath path(runtime, arguments[0]);
  const Value* otherwise = arguments.given(1);
  const bool with_case = arguments.flag(2, false);
  std::vector<Keyed> items;
  for (Value& item : to_vector(subject, &runtime.budget)) {
    Value key = path.get(item, otherwise);
    items.push_back({with_case ? key : without_case(runtime, key), std::move(item)});
  }
  sort_keyed(runtime, items, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < items.size();) {
    std::size_t end = begin;
    std::vector<Value> members;
    while (end < items.size() && equals(items[begin].key, items[end].key, &runtime.budget)) {
      members.push_back(items[end++].item);
    }
    Value name = path.get(items[begin].item, otherwise);
    groups.push_back(Value::tuple(
        {std::move(name), Value::list(std::move(members), &runtime.budget)}, &runtime.budget));
    begin = end;
  }
  return Value::list(std::move(groups), &runtime.budget);
}

template <bool largest>
Value extreme(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const bool with_case = arguments.flag(0, false);
  const AttributePath path(runtime, arguments[1]);
  Keyed best;
  for (Value& item : to_vector(subject, &runtime.budget)) {
    Value key = path.get(item);
    if (!with_case) key = without_case(runtime, key);
    const bool better = best.item.is_missing() ||
                        (largest ? ordered(Order::kGreater, key, best.key, &runtime.budget)
                                 : less(key, best.key, &runtime.budget));
    if (better) best = {std::move(key), std::move(item)};
  }
  if (best.item.is_missing()) return Value::undefined("No aggregated item, sequence was empty.");
  return best.item;
}

Value sort(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const bool with_case = arguments.flag(1, false);
  std::vector<AttributePath> paths;
  if (const Value* given = arguments.given(2); given != nullptr && given->is_string()) {
    const Value comma = Value::string(",", Origin::kTemplate);
    for (const Value& part : split(runtime, given->string(), &comma, -1)) {
      paths.emplace_back(runtime, &part);
    }
  } else {
    paths.emplace_back(runtime, given);
  }
  std::vector<Keyed> all;
  for (Value& item : to_vector(subject, &runtime.budget)) {
    std::vector<Value> keys;
    for (const AttributePath& path : paths) {
      Value key = path.get(item);
      keys.push_back(with_case ? std::move(key) : without_case(runtime, key));
    }
    all.push_back({Value::list(std::move(keys), &runtime.budget), std::move(item)});
  }
  sort_keyed(runtime, all, arguments.flag(0, false));
  std::vector<Value> results;
  results.reserve(all.size());
  for (Keyed& item : all) results.push_back(std::move(item.item));
  return Value::list(std::move(results), &runtime.budget);
}

Value unique(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const bool with_case = arguments.flag(0, false);
  const AttributePath path(runtime, arguments[1]);
  Dict seen;
  std::vector<Value> results;
  for (Value& item : to_vector(subject, &runtime.budget)) {
    Value key = path.get(item);
    if (!with_case) key = without_case(runtime, key);
    if (seen.find(key, &runtime.budget) != nullptr) continue;
    seen.set(std::move(key), Value::none(), &runtime.budget);
    results.push_back(std::move(item));
  }
  return make_generator(runtime, std::move(results));
}

constexpr std::array kFilters = {
    NativeRow{"dictsort", dict_sort, 0, {"case_sensitive", "by", "reverse"}},
    NativeRow{"groupby", group_by, 1, {"attribute", "default", "case_sensitive"}},
    NativeRow{"max", extreme<true>, 0, {"case_sensitive", "attribute"}},
    NativeRow{"min", extreme<false>, 0, {"case_sensitive", "attribute"}},
    NativeRow{"sort", sort, 0, {"reverse", "case_sensitive", "attribute"}},
    NativeRow{"unique", unique, 0, {"case_sensitive", "attribute"}},
};
static_assert(is_sorted(kFilters));

}  // namespace

std::span<const NativeRow> order_filters() { return kFilters; }

}  // namespace tern::text::jinja
