// The methods of texts, as rows.
#pragma once

#include <span>

#include "text/chat_template/native.h"

namespace tern::text::jinja {

[[nodiscard]] std::span<const NativeRow> text_methods();

}  // namespace tern::text::jinja
