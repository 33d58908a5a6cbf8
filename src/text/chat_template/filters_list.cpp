// Filters of lists and dictionaries, and the place where all filters are looked up.
#include <algorithm>
#include <array>

#include "text/chat_template/attribute_path.h"
#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/filters.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/operators.h"
#include "text/chat_template/print.h"
#include "text/chat_template/text_functions.h"

namespace tern::text::jinja {
namespace {

Value attribute(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const std::string& name = text_argument(*arguments[0], "attr").text;
  require_defined(subject);
  // Attributes only: the entries of a dictionary are none.
  const bool entry =
      subject.is_dict() && subject.dict().dict.find(name, &runtime.budget) != nullptr;
  bool changes_object = false;
  if (entry && find_method(subject, name, changes_object) == nullptr) {
    return Value::undefined(fmt::format("'dict object' has no attribute {}", quote_short(name)),
                            FaultKind::kUndefined, &runtime.budget);
  }
  return get_attribute(runtime, subject, name);
}

Value batch(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const std::int64_t size = to_index(*arguments[0]);
  const Value* fill = arguments.given(1);
  constexpr auto kMostItems = static_cast<std::int64_t>(kMaxLiveBytes / sizeof(Value));
  if (size > kMostItems) {
    raise(FaultKind::kLimit, "batch() makes rows of {} items; at most {} are made", size,
          kMostItems);
  }
  std::vector<Value> rows;
  std::vector<Value> row;
  for (Value& item : to_vector(subject, &runtime.budget)) {
    if (static_cast<std::int64_t>(row.size()) == size) {
      rows.push_back(Value::list(std::exchange(row, {}), &runtime.budget));
    }
    row.push_back(std::move(item));
  }
  if (fill != nullptr && !row.empty() && static_cast<std::int64_t>(row.size()) < size) {
    const auto items = static_cast<std::size_t>(size);
    const Held held(runtime.budget, items * sizeof(Value));
    runtime.budget.items(items - row.size());
    row.resize(items, *fill);
  }
  if (!row.empty()) rows.push_back(Value::list(std::move(row), &runtime.budget));
  return make_generator(runtime, std::move(rows));
}

Value first(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  Iteration walk(subject, &runtime.budget);
  Value item;
  if (walk.next(item)) return item;
  return Value::undefined("No first item, sequence was empty.");
}

Value last(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  if (subject.is(Kind::kGenerator)) {
    raise(FaultKind::kType, "'generator' object is not reversible");
  }
  const std::int64_t length = length_of(subject);
  if (length == 0) return Value::undefined("No last item, sequence was empty.");
  if (subject.is_dict()) return subject.dict().dict.entries().back().key;
  if (subject.is(Kind::kView)) return to_vector(subject, &runtime.budget).back();
  return get_item(runtime, subject, Value::integer(-1));
}

Value items(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  if (subject.is_undefined()) return make_generator(runtime, {});
  if (!subject.is_dict()) raise(FaultKind::kType, "Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const Dict::Entry& entry : subject.dict().dict.entries()) {
    runtime.budget.step();
    pairs.push_back(Value::tuple({entry.key, entry.value}, &runtime.budget));
  }
  return make_generator(runtime, std::move(pairs));
}

Value join(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const Value separator = arguments[0] != nullptr ? to_text(*arguments[0], &runtime.budget)
                                                  : Value::string("", Origin::kTemplate);
  const AttributePath path(runtime, arguments[1]);
  TextBuilder out(&runtime.budget);
  Iteration walk(subject, &runtime.budget);
  Value item;
  for (bool is_first = true; walk.next(item); is_first = false) {
    if (!is_first) out.append(separator.string());
    append_str(out, path.get(item));
  }
  return out.finish();
}

Value length(Runtime& /*runtime*/, const Value& subject, const Bound& /*arguments*/) {
  return Value::integer(length_of(subject));
}

Value list(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  return Value::list(to_vector(subject, &runtime.budget), &runtime.budget);
}

Value reverse(Runtime& runtime, const Value& subject, const Bound& /*arguments*/) {
  if (!subject.is_string()) {
    std::vector<Value> all = to_vector(subject, &runtime.budget);
    std::reverse(all.begin(), all.end());
    return make_generator(runtime, std::move(all));
  }
  const StringData& text = subject.string();
  TextBuilder out(&runtime.budget);
  for (std::size_t end = text.text.size(); end > 0;) {
    const std::size_t size = code_point_before(text.text, end).length;
    out.append(text, end - size, end);
    end -= size;
  }
  return out.finish(text.markup);
}

Value slice_filter(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const std::int64_t slices = to_index(*arguments[0]);
  const Value* fill = arguments.given(1);
  const std::vector<Value> all = to_vector(subject, &runtime.budget);
  const auto count = static_cast<std::int64_t>(all.size());
  if (slices == 0) raise(FaultKind::kZeroDivision, "integer division or modulo by zero");
  std::vector<Value> rows;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    runtime.budget.step();
    const std::int64_t end = begin + count / slices + (i < count % slices ? 1 : 0);
    std::vector<Value> row(all.begin() + begin, all.begin() + end);
    if (fill != nullptr && i >= count % slices) row.push_back(*fill);
    rows.push_back(Value::list(std::move(row), &runtime.budget));
    begin = end;
  }
  return make_generator(runtime, std::move(rows));
}

Value sum(Runtime& runtime, const Value& subject, const Bound& arguments) {
  const AttributePath path(runtime, arguments[0]);
  Value total = arguments[1] != nullptr ? *arguments[1] : Value::integer(0);
  if (total.is_string())
    raise(FaultKind::kType, "sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : to_vector(subject, &runtime.budget)) {
    runtime.budget.step();
    total = arithmetic(ArithmeticOp::kAdd, total, path.get(item), &runtime.budget);
  }
  return total;
}

constexpr std::array kFilters = {
    NativeRow{"attr", attribute, 1, {"name"}},
    NativeRow{"batch", batch, 1, {"linecount", "fill_with"}},
    NativeRow{"count", length, 0, {}},
    NativeRow{"first", first, 0, {}},
    NativeRow{"items", items, 0, {}},
    NativeRow{"join", join, 0, {"d", "attribute"}},
    NativeRow{"last", last, 0, {}},
    NativeRow{"length", length, 0, {}},
    NativeRow{"list", list, 0, {}},
    NativeRow{"reverse", reverse, 0, {}},
    NativeRow{"slice", slice_filter, 1, {"slices", "fill_with"}},
    NativeRow{"sum", sum, 0, {"attribute", "start"}},
};
static_assert(is_sorted(kFilters));

}  // namespace

std::span<const NativeRow> list_filters() { return kFilters; }

const NativeRow* find_filter(std::string_view name) {
  for (const auto rows :
       {text_filters(), number_filters(), list_filters(), order_filters(), select_filters()}) {
    if (const NativeRow* row = find_row(rows, name)) return row;
  }
  return nullptr;
}

}  // namespace tern::text::jinja
