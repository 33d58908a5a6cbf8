// One conversion of a format, '%5.2f' or '{:>5}': parsed by its user, applied here.
#pragma once

#include <string>
#include <string_view>

#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =, or 0: by kind
  char sign = '-';
  bool alternate = false;
  bool grouped = false;
  std::size_t width = 0;
  int precision = -1;
  char type = 0;
};

inline constexpr std::size_t kMaxFormatWidth = 1 << 20;
inline constexpr int kMaxFormatPrecision = 1000;

// The decimal number at `at`, which moves behind it.
[[nodiscard]] std::size_t read_size(std::string_view text, std::size_t& at, std::size_t limit);
[[nodiscard]] bool is_number(const Value& value);
void append_number(TextBuilder& out, const Value& value, const Spec& spec);
void append_text(TextBuilder& out, const Value& text, const Spec& spec);
[[nodiscard]] Value repr_text(const Value& value, Budget* budget);

}  // namespace tern::text::jinja
