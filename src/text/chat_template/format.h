// Python's two ways to format text: '%s' % values and '{}'.format(values).
#pragma once

#include "text/chat_template/native.h"
#include "text/chat_template/value.h"

namespace tern::text::jinja {

// format % values: values is a tuple, a dictionary for %(name)s, or one value.
[[nodiscard]] Value percent_format(const Value& format, const Value& values, Budget* budget);
// format.format(*positional, **named).
[[nodiscard]] Value brace_format(Runtime& runtime, const Value& format, const Arguments& arguments);

}  // namespace tern::text::jinja
