// Walking through whatever a `for` accepts.
#include "text/chat_template/iterate.h"

#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {

Iteration::Iteration(Value subject, Budget* budget)
    : subject_(std::move(subject)), budget_(budget) {
  if (subject_.is_undefined() && subject_.as<UndefinedData>().kind == FaultKind::kSecurity) {
    raise_undefined(subject_);
  }
  if (!is_iterable(subject_)) {
    raise(FaultKind::kType, "'{}' object is not iterable", type_name(subject_));
  }
}

bool Iteration::next(Value& item) {
  if (budget_ != nullptr) budget_->step();
  switch (subject_.kind()) {
    case Kind::kList:
    case Kind::kTuple:
      if (position_ >= subject_.items().size()) return false;
      item = subject_.items()[position_++];
      return true;
    case Kind::kDict:
      return next_in_dict(item);
    case Kind::kView:
      return next_in_view(item);
    case Kind::kString: {
      const std::string& text = subject_.string().text;
      if (position_ >= text.size()) return false;
      const std::size_t begin = position_;
      position_ += code_point_at(text, begin).length;
      TextBuilder character(budget_);
      character.append(subject_.string(), begin, position_);
      item = character.finish();  // a safe text gives ordinary characters
      return true;
    }
    case Kind::kRange: {
      const auto& range = subject_.as<RangeData>();
      if (static_cast<std::int64_t>(position_) >= range.count) return false;
      item = range_item(range, position_++);
      return true;
    }
    case Kind::kGenerator: {
      auto& generator = subject_.as<GeneratorData>();
      if (generator.next >= generator.items.size()) return false;
      item = std::move(generator.items[generator.next++]);
      return true;
    }
    default:
      return false;
  }
}

bool Iteration::next_in_dict(Value& item) {
  const auto& entries = subject_.dict().dict.entries();
  if (position_ >= entries.size()) return false;
  item = entries[position_++].key;
  return true;
}

bool Iteration::next_in_view(Value& item) {
  const auto& view = subject_.as<ViewData>();
  const auto& entries = view.dict.dict().dict.entries();
  if (position_ >= entries.size()) return false;
  const Dict::Entry& entry = entries[position_++];
  switch (view.view) {
    case ViewKind::kKeys:
      item = entry.key;
      break;
    case ViewKind::kValues:
      item = entry.value;
      break;
    case ViewKind::kItems:
      item = Value::tuple({entry.key, entry.value}, budget_);
      break;
  }
  return true;
}

std::optional<std::int64_t> Iteration::size() const {
  if (subject_.is(Kind::kGenerator)) return std::nullopt;
  return length_of(subject_);
}

std::vector<Value> to_vector(const Value& subject, Budget* budget) {
  std::vector<Value> items;
  if (subject.is_sequence()) {
    if (budget != nullptr) budget->items(subject.items().size());
    return subject.items();
  }
  Iteration walk(subject, budget);
  Value item;
  while (walk.next(item)) items.push_back(std::move(item));
  return items;
}

Value range_item(const RangeData& range, std::size_t index) {
  // Unsigned, because index * step alone may leave 64 bits while the sum does not.
  return Value::integer(static_cast<std::int64_t>(static_cast<std::uint64_t>(range.start) +
                                                  static_cast<std::uint64_t>(index) *
                                                      static_cast<std::uint64_t>(range.step)));
}

bool is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kGenerator:
      return true;
    default:
      return false;
  }
}

std::int64_t length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      if (value.as<UndefinedData>().kind == FaultKind::kSecurity) raise_undefined(value);
      return 0;
    case Kind::kString:
      return static_cast<std::int64_t>(value.string().length);
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<std::int64_t>(value.items().size());
    case Kind::kDict:
      return static_cast<std::int64_t>(value.dict().dict.size());
    case Kind::kView:
      return static_cast<std::int64_t>(value.as<ViewData>().dict.dict().dict.size());
    case Kind::kRange:
      return value.as<RangeData>().count;
    default:
      raise(FaultKind::kType, "object of type '{}' has no len()", type_name(value));
  }
}

}  // namespace tern::text::jinja
