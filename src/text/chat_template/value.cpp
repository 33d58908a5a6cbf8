// Making values, and dictionaries that keep their order.
#include "text/chat_template/value.h"

#include <algorithm>
#include <bit>

#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {
namespace {

// A linear search over so few short keys is faster than a tree.
constexpr std::size_t kLinearKeys = 12;

int depth_of(const std::vector<Value>& values) {
  int depth = 0;
  for (const Value& value : values) depth = std::max(depth, value.depth());
  return depth + 1;
}

int depth_of(const Dict& dict) {
  int depth = 0;
  for (const Dict::Entry& entry : dict.entries()) {
    depth = std::max({depth, entry.key.depth(), entry.value.depth()});
  }
  return depth + 1;
}

std::int64_t range_count(std::int64_t start, std::int64_t stop, std::int64_t step) {
  // Differences of 64-bit numbers fit unsigned; the count is at most 2^64 - 1 and is capped.
  const auto first = static_cast<std::uint64_t>(start);
  const auto last = static_cast<std::uint64_t>(stop);
  std::uint64_t span = 0;
  std::uint64_t stride = 0;
  if (step > 0 && start < stop) {
    span = last - first;
    stride = static_cast<std::uint64_t>(step);
  } else if (step < 0 && start > stop) {
    span = first - last;
    stride = std::uint64_t{0} - static_cast<std::uint64_t>(step);
  } else {
    return 0;
  }
  const std::uint64_t count = (span - 1) / stride + 1;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(count, INT64_MAX));
}

}  // namespace

Object::Object(Budget* owner, std::size_t size, int nesting)
    : budget(nullptr), bytes(size), depth(nesting) {
  if (depth > kMaxValueDepth) {
    raise(FaultKind::kRecursion, "values are nested deeper than {} levels", kMaxValueDepth);
  }
  if (owner != nullptr) {
    owner->hold(bytes);
    budget = owner;  // only now, so that a refusal releases nothing
  }
}

Object::~Object() {
  if (budget != nullptr) budget->release(bytes);
}

StringData::StringData(Budget* owner, std::string content, std::vector<Run> stretches, Origin from,
                       bool safe)
    : Object(owner, sizeof(StringData) + content.size() + stretches.size() * sizeof(Run), 0),
      text(std::move(content)),
      runs(std::move(stretches)),
      origin(from),
      markup(safe),
      length(count_code_points(text)) {}

ListData::ListData(Budget* owner, std::vector<Value> values)
    : Object(owner, sizeof(ListData) + values.size() * sizeof(Value), depth_of(values)),
      items(std::move(values)) {}

DictData::DictData(Budget* owner, Dict content)
    : Object(owner, sizeof(DictData) + content.size() * kBytesPerEntry, depth_of(content)),
      dict(std::move(content)) {}

ViewData::ViewData(Budget* owner, Value of, ViewKind which)
    : Object(owner, sizeof(ViewData), of.depth() + 1), dict(std::move(of)), view(which) {}

RangeData::RangeData(Budget* owner, std::int64_t from, std::int64_t to, std::int64_t by)
    : Object(owner, sizeof(RangeData), 0),
      start(from),
      stop(to),
      step(by),
      count(range_count(from, to, by)) {}

GeneratorData::GeneratorData(Budget* owner, std::vector<Value> values)
    : Object(owner, sizeof(GeneratorData) + values.size() * sizeof(Value), depth_of(values)),
      items(std::move(values)) {}

CyclerData::CyclerData(Budget* owner, std::vector<Value> values)
    : Object(owner, sizeof(CyclerData) + values.size() * sizeof(Value), depth_of(values)),
      items(std::move(values)) {}

Value Value::boolean(bool value) {
  Value result(Kind::kBool);
  result.integer_ = value ? 1 : 0;
  return result;
}

Value Value::integer(std::int64_t value) {
  Value result(Kind::kInt);
  result.integer_ = value;
  return result;
}

Value Value::real(double value) {
  Value result(Kind::kFloat);
  result.real_ = value;
  return result;
}

Value Value::big_integer(std::string digits, Budget* budget) {
  return object(Kind::kBigInt, std::make_shared<DigitsData>(budget, std::move(digits)));
}

Value Value::string(std::string text, Origin origin) {
  return object(Kind::kString,
                std::make_shared<StringData>(nullptr, replace_invalid_utf8(std::move(text)),
                                             std::vector<Run>{}, origin, false));
}

Value Value::list(std::vector<Value> items, Budget* budget) {
  return object(Kind::kList, std::make_shared<ListData>(budget, std::move(items)));
}

Value Value::tuple(std::vector<Value> items, Budget* budget) {
  return object(Kind::kTuple, std::make_shared<ListData>(budget, std::move(items)));
}

Value Value::dict(std::shared_ptr<DictData> data) { return object(Kind::kDict, std::move(data)); }

Value Value::undefined(std::string message, FaultKind kind, Budget* budget) {
  return object(Kind::kUndefined,
                std::make_shared<UndefinedData>(budget, std::move(message), kind));
}

Value Value::space(NamespaceData* data) {
  Value result(Kind::kNamespace);
  result.space_ = data;
  return result;
}

Value Value::object(Kind kind, std::shared_ptr<Object> data) {
  Value result(kind);
  result.object_ = std::move(data);
  return result;
}

std::string_view Value::text() const {
  return kind_ == Kind::kBigInt ? std::string_view(as<DigitsData>().digits)
                                : std::string_view(string().text);
}

std::optional<std::size_t> Dict::position(std::string_view key, Budget* budget) const {
  if (entries_.size() > kLinearKeys) {
    // A tree of n nodes is at most 2 log2 n deep, and each comparison may read the whole key.
    if (budget != nullptr) budget->bytes(key.size() * std::bit_width(index_.size()));
    const auto found = index_.find(key);
    if (found == index_.end()) return std::nullopt;
    return found->second;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].key.is_string()) continue;
    const std::string_view other = entries_[i].key.text();
    if (other.size() != key.size()) continue;
    if (budget != nullptr) budget->bytes(key.size());
    if (other == key) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> Dict::position(const Value& key, Budget* budget) const {
  if (key.is_string()) return position(key.text(), budget);
  if (budget != nullptr) budget->items(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].key.is_string() && equals(entries_[i].key, key, budget)) return i;
  }
  return std::nullopt;
}

const Value* Dict::find(std::string_view key, Budget* budget) const {
  const auto found = position(key, budget);
  return found ? &entries_[*found].value : nullptr;
}

const Value* Dict::find(const Value& key, Budget* budget) const {
  require_hashable(key);
  const auto found = position(key, budget);
  return found ? &entries_[*found].value : nullptr;
}

void Dict::set(Value key, Value value, Budget* budget) {
  require_hashable(key);
  if (const auto found = position(key, budget)) {
    entries_[*found].value = std::move(value);
    return;
  }
  entries_.push_back({std::move(key), std::move(value)});
  if (entries_.size() <= kLinearKeys) return;
  const std::size_t first = entries_.size() == kLinearKeys + 1 ? 0 : entries_.size() - 1;
  for (std::size_t i = first; i < entries_.size(); ++i) {
    if (entries_[i].key.is_string()) index_.emplace(entries_[i].key.text(), i);
  }
}

void Dict::set(std::string_view key, Value value, Origin origin) {
  set(Value::string(std::string(key), origin), std::move(value), nullptr);
}

void Dict::clear() {
  index_.clear();
  entries_.clear();
}

void NamespaceData::set(std::string_view name, Value value, Budget& budget) {
  const std::size_t before = attributes.size();
  attributes.set(make_text(std::string(name), Origin::kTemplate, &budget), std::move(value),
                 &budget);
  if (attributes.size() == before) return;
  budget.hold(kBytesPerEntry);
  held += kBytesPerEntry;
}

Value make_dict(Dict dict, Budget* budget) {
  return Value::dict(std::make_shared<DictData>(budget, std::move(dict)));
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kBigInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.string().markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kView: {
      const ViewKind view = value.as<ViewData>().view;
      return view == ViewKind::kKeys     ? "dict_keys"
             : view == ViewKind::kValues ? "dict_values"
                                         : "dict_items";
    }
    case Kind::kRange:
      return "range";
    case Kind::kGenerator:
      return "generator";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kMacro:
      return "Macro";
    case Kind::kFunction:
      return "function";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "object";
}

}  // namespace tern::text::jinja
