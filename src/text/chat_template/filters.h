// The filters of the template language, one table per file.
#pragma once

#include <span>

#include "text/chat_template/native.h"

namespace tern::text::jinja {

[[nodiscard]] std::span<const NativeRow> text_filters();
[[nodiscard]] std::span<const NativeRow> number_filters();
[[nodiscard]] std::span<const NativeRow> list_filters();
[[nodiscard]] std::span<const NativeRow> order_filters();
[[nodiscard]] std::span<const NativeRow> select_filters();

}  // namespace tern::text::jinja
