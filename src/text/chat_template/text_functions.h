// What filters and methods of texts share.
#pragma once

#include "text/chat_template/native.h"
#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {

[[nodiscard]] Value upper(Runtime& runtime, const StringData& text);
[[nodiscard]] Value lower(Runtime& runtime, const StringData& text);
[[nodiscard]] Value capitalize(Runtime& runtime, const StringData& text);
// Python's str.title: a capital after everything that is no letter.
[[nodiscard]] Value title(Runtime& runtime, const StringData& text);
// The filter's: a capital after blanks, hyphens and opening brackets.
[[nodiscard]] Value title_words(Runtime& runtime, const StringData& text);
[[nodiscard]] Value swap_case(Runtime& runtime, const StringData& text);

// `characters` null: white space.
[[nodiscard]] Value strip(Runtime& runtime, const StringData& text, const Value* characters,
                          bool left, bool right);
// At most `count` times (negative: all); an empty `old` stands before and after every character.
[[nodiscard]] Value replace(Runtime& runtime, const StringData& text, const StringData& old,
                            const StringData& with, std::int64_t count);
// `separator` null: runs of white space. At most `limit` cuts (negative: all).
[[nodiscard]] std::vector<Value> split(Runtime& runtime, const StringData& text,
                                       const Value* separator, std::int64_t limit);
[[nodiscard]] std::vector<Value> split_from_right(Runtime& runtime, const StringData& text,
                                                  const Value* separator, std::int64_t limit);
[[nodiscard]] std::vector<Value> split_lines(Runtime& runtime, const StringData& text,
                                             bool keep_ends);
[[nodiscard]] std::string repeat_fill(std::string_view fill, std::size_t count);
[[nodiscard]] Value pad(Runtime& runtime, const StringData& text, std::int64_t width,
                        std::string_view fill, bool left, bool right);

// The argument as a text; a TypeError for other kinds.
[[nodiscard]] const StringData& text_argument(const Value& value, std::string_view function);

}  // namespace tern::text::jinja
