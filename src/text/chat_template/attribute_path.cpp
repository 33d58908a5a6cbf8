// The attribute argument of many filters.
#include "text/chat_template/attribute_path.h"

#include <algorithm>

#include "text/chat_template/text_functions.h"

namespace tern::text::jinja {

AttributePath::AttributePath(Runtime& runtime, const Value* attribute) : runtime_(runtime) {
  if (attribute == nullptr || attribute->is_none()) return;
  if (!attribute->is_string()) {
    parts_.push_back(*attribute);
    return;
  }
  const Value dot = Value::string(".", Origin::kTemplate);
  for (const Value& part : split(runtime, attribute->string(), &dot, -1)) {
    const std::string_view text = part.text();
    const bool number =
        !text.empty() && text.size() < 10 &&
        std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    parts_.push_back(number ? Value::integer(std::stoll(std::string(text))) : part);
  }
}

Value AttributePath::get(Value item, const Value* otherwise) const {
  for (const Value& part : parts_) {
    item = get_item(runtime_, item, part);
    if (otherwise != nullptr && item.is_undefined()) item = *otherwise;
  }
  return item;
}

Value make_generator(Runtime& runtime, std::vector<Value> items) {
  return Value::object(Kind::kGenerator,
                       std::make_shared<GeneratorData>(&runtime.budget, std::move(items)));
}

}  // namespace tern::text::jinja
