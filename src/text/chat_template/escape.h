// HTML escaping, as the filters escape and safe need it.
#pragma once

#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {

// & < > " ' as entities, unless the text is marked as safe already.
void append_escaped(TextBuilder& out, const StringData& text);
[[nodiscard]] Value escape(const Value& value, Budget* budget);

}  // namespace tern::text::jinja
