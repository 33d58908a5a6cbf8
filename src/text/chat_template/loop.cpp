// The `loop` variable of a for statement.
#include <algorithm>

#include "text/chat_template/objects.h"

namespace tern::text::jinja {

LoopData::LoopData(Budget* owner, Value over, std::function<bool(const Value&)> accepts,
                   std::int64_t outer_depth)
    : Object(owner, sizeof(LoopData), over.depth() + 1),
      depth0(outer_depth),
      source_(std::in_place, std::move(over), owner),
      accepts_(std::move(accepts)) {
  if (!accepts_) count_ = source_->size();
}

bool LoopData::fetch(Value& item) {
  while (!ended_ && source_) {
    if (!source_->next(item)) {
      ended_ = true;
      break;
    }
    if (!accepts_ || accepts_(item)) return true;
  }
  return false;
}

bool LoopData::advance(Value& item) {
  if (!ahead_.empty()) {
    item = std::move(ahead_.back());
    ahead_.pop_back();
  } else if (!fetch(item)) {
    return false;
  }
  ++index0;
  before = std::move(current);
  current = item;
  return true;
}

const Value* LoopData::peek() {
  if (ahead_.empty()) {
    Value item;
    if (!fetch(item)) return nullptr;
    ahead_.push_back(std::move(item));
  }
  return &ahead_.back();
}

bool LoopData::is_last() { return peek() == nullptr; }

std::int64_t LoopData::count() {
  if (!count_) {
    std::vector<Value> rest;
    Value item;
    while (fetch(item)) rest.push_back(std::move(item));
    std::reverse(rest.begin(), rest.end());
    // What was read ahead before comes first.
    rest.insert(rest.end(), ahead_.begin(), ahead_.end());
    ahead_ = std::move(rest);
    count_ = index0 + 1 + static_cast<std::int64_t>(ahead_.size());
  }
  return *count_;
}

void LoopData::finish() {
  source_.reset();
  accepts_ = nullptr;
  ahead_.clear();
  before = Value();
  current = Value();
  changed = Value();
  recursive = nullptr;
  frame = nullptr;
}

Value LoopData::attribute(std::string_view name, bool& found) {
  found = true;
  if (name == "index") return Value::integer(index0 + 1);
  if (name == "index0") return Value::integer(index0);
  if (name == "first") return Value::boolean(index0 == 0);
  if (name == "last") return Value::boolean(is_last());
  if (name == "length") return Value::integer(count());
  if (name == "revindex") return Value::integer(count() - index0);
  if (name == "revindex0") return Value::integer(count() - index0 - 1);
  if (name == "depth") return Value::integer(depth0 + 1);
  if (name == "depth0") return Value::integer(depth0);
  if (name == "previtem") {
    return index0 == 0 || before.is_missing() ? Value::undefined("there is no previous item")
                                              : before;
  }
  if (name == "nextitem") {
    const Value* next = peek();
    return next != nullptr ? *next : Value::undefined("there is no next item");
  }
  found = false;
  return Value();
}

std::string loop_text(const Value& loop) {
  auto& data = loop.as<LoopData>();
  return fmt::format("<LoopContext {}/{}>", data.index0 + 1, data.count());
}

}  // namespace tern::text::jinja
