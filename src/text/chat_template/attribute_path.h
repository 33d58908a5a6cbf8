// The attribute argument of many filters: "a.b", "0.name", a number, or nothing.
#pragma once

#include "text/chat_template/native.h"

namespace tern::text::jinja {

class AttributePath {
 public:
  // Null and none: the item itself.
  AttributePath(Runtime& runtime, const Value* attribute);

  // `otherwise` (may be null) takes the place of undefined values on the way.
  [[nodiscard]] Value get(Value item, const Value* otherwise = nullptr) const;

 private:
  Runtime& runtime_;
  std::vector<Value> parts_;
};

// What lazy filters give.
[[nodiscard]] Value make_generator(Runtime& runtime, std::vector<Value> items);

}  // namespace tern::text::jinja
