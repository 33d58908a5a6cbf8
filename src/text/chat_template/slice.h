// x[start:stop:step].
#pragma once

#include "text/chat_template/native.h"

namespace tern::text::jinja {

// Missing or none parts have Python's defaults. Unlike x[key], a value that has no slices is an
// error.
[[nodiscard]] Value slice(Runtime& runtime, const Value& subject, const Value& start,
                          const Value& stop, const Value& step);

}  // namespace tern::text::jinja
