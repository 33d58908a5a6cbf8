// What filters and methods of texts share.
#include "text/chat_template/text_functions.h"

#include <algorithm>
#include <bitset>

#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/iterate.h"

namespace tern::text::jinja {
namespace {

// Every code point through `map(out, point, position)`, with the origin it came from.
template <class Map>
Value mapped(Runtime& runtime, const StringData& text, bool markup, Map&& map) {
  TextBuilder out(&runtime.budget);
  OriginCursor origin(text);
  std::string piece;
  for (std::size_t i = 0; i < text.text.size();) {
    // Stretches of one origin go out together.
    const Origin from = origin.at(i);
    piece.clear();
    while (i < text.text.size() && piece.size() < 4096 && origin.at(i) == from) {
      const CodePoint next = code_point_at(text.text, i);
      map(piece, next.code, i);
      i += next.length;
    }
    runtime.budget.characters(piece.size());
    out.append(piece, from);
  }
  return out.finish(markup);
}

bool is_cased(char32_t code) { return is_upper(code) || is_lower(code) || is_title(code); }

void append_lower_at(std::string& out, const StringData& text, char32_t code, std::size_t at) {
  if (code == 0x3A3) return append_utf8(out, lower_sigma(text.text, at));
  append_lower(out, code);
}

// A set of characters for strip().
class CharacterSet {
 public:
  explicit CharacterSet(std::string_view characters) {
    for (std::size_t i = 0; i < characters.size();) {
      const CodePoint point = code_point_at(characters, i);
      i += point.length;
      if (point.code < 128) {
        ascii_.set(point.code);
      } else {
        others_.push_back(point.code);
      }
    }
    std::sort(others_.begin(), others_.end());
  }
  [[nodiscard]] bool contains(char32_t code) const {
    if (code < 128) return ascii_.test(code);
    return std::binary_search(others_.begin(), others_.end(), code);
  }

 private:
  std::bitset<128> ascii_;
  std::vector<char32_t> others_;
};

// Line ends of str.splitlines.
bool is_line_end(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

}  // namespace

const StringData& text_argument(const Value& value, std::string_view function) {
  require_defined(value);
  if (!value.is_string()) {
    raise(FaultKind::kType, "{}() argument must be str, not {}", function, type_name(value));
  }
  return value.string();
}

Value upper(Runtime& runtime, const StringData& text) {
  return mapped(runtime, text, text.markup,
                [](std::string& out, char32_t code, std::size_t) { append_upper(out, code); });
}

Value lower(Runtime& runtime, const StringData& text) {
  return mapped(runtime, text, text.markup, [&](std::string& out, char32_t code, std::size_t at) {
    append_lower_at(out, text, code, at);
  });
}

Value capitalize(Runtime& runtime, const StringData& text) {
  return mapped(runtime, text, text.markup, [&](std::string& out, char32_t code, std::size_t at) {
    if (at == 0) return append_title(out, code);
    append_lower_at(out, text, code, at);
  });
}

Value title(Runtime& runtime, const StringData& text) {
  bool after_letter = false;
  return mapped(runtime, text, text.markup, [&](std::string& out, char32_t code, std::size_t at) {
    if (after_letter) {
      append_lower_at(out, text, code, at);
    } else {
      append_title(out, code);
    }
    after_letter = is_cased(code);
  });
}

Value title_words(Runtime& runtime, const StringData& text) {
  bool starts_word = true;
  return mapped(runtime, text, false, [&](std::string& out, char32_t code, std::size_t at) {
    const bool separates =
        is_space(code) || code == '-' || code == '(' || code == '{' || code == '[' || code == '<';
    if (separates) {
      append_utf8(out, code);
    } else if (starts_word) {
      append_upper(out, code);
    } else {
      append_lower_at(out, text, code, at);
    }
    starts_word = separates;
  });
}

Value swap_case(Runtime& runtime, const StringData& text) {
  return mapped(runtime, text, text.markup, [&](std::string& out, char32_t code, std::size_t at) {
    if (is_upper(code)) return append_lower_at(out, text, code, at);
    if (is_lower(code)) return append_upper(out, code);
    append_utf8(out, code);
  });
}

Value strip(Runtime& runtime, const StringData& text, const Value* characters, bool left,
            bool right) {
  std::size_t begin = 0;
  std::size_t end = text.text.size();
  const bool by_space = characters == nullptr || characters->is_none();
  const CharacterSet set(by_space ? std::string_view() : text_argument(*characters, "strip").text);
  const auto goes = [&](char32_t code) { return by_space ? is_space(code) : set.contains(code); };
  while (left && begin < end) {
    const CodePoint point = code_point_at(text.text, begin);
    if (!goes(point.code)) break;
    begin += point.length;
  }
  while (right && begin < end) {
    const CodePoint point = code_point_before(text.text, end);
    if (!goes(point.code)) break;
    end -= point.length;
  }
  runtime.budget.characters(text.text.size() - (end - begin) +
                            (by_space ? 0 : characters->text().size()));
  return slice_text(text, begin, end, &runtime.budget);
}

Value replace(Runtime& runtime, const StringData& text, const StringData& old,
              const StringData& with, std::int64_t count) {
  TextBuilder out(&runtime.budget);
  runtime.budget.search(text.text.size() + old.text.size());
  std::size_t begin = 0;
  if (old.text.empty()) {
    // Before every character, and behind the last one.
    while (count != 0) {
      out.append(with);
      if (count > 0) --count;
      if (begin == text.text.size()) return out.finish(text.markup);
      const std::size_t length = code_point_at(text.text, begin).length;
      out.append(text, begin, begin + length);
      begin += length;
    }
  } else {
    while (count != 0) {
      const std::size_t at = find_text(text.text, old.text, begin);
      if (at == std::string_view::npos) break;
      out.append(text, begin, at);
      out.append(with);
      begin = at + old.text.size();
      if (count > 0) --count;
    }
  }
  out.append(text, begin, text.text.size());
  return out.finish(text.markup);
}

std::vector<Value> split(Runtime& runtime, const StringData& text, const Value* separator,
                         std::int64_t limit) {
  std::vector<Value> parts;
  const auto add = [&](std::size_t begin, std::size_t end) {
    runtime.budget.step();
    parts.push_back(slice_text(text, begin, end, &runtime.budget));
  };
  const std::string& all = text.text;
  if (separator == nullptr) {
    runtime.budget.characters(all.size());
  } else {
    runtime.budget.search(all.size());
  }
  std::size_t begin = 0;
  if (separator != nullptr) {
    const std::string& mark = text_argument(*separator, "split").text;
    if (mark.empty()) raise(FaultKind::kValue, "empty separator");
    for (; limit != 0; --limit) {
      const std::size_t at = find_text(all, mark, begin);
      if (at == std::string_view::npos) break;
      add(begin, at);
      begin = at + mark.size();
    }
    add(begin, all.size());
    return parts;
  }
  while (true) {
    while (begin < all.size() && is_space(code_point_at(all, begin).code)) {
      begin += code_point_at(all, begin).length;
    }
    if (begin == all.size()) return parts;
    std::size_t end = begin;
    if (limit == 0) {
      end = trim_right(all).size();
    } else {
      while (end < all.size() && !is_space(code_point_at(all, end).code)) {
        end += code_point_at(all, end).length;
      }
    }
    add(begin, end);
    if (limit == 0) return parts;
    --limit;
    begin = end;
  }
}

std::vector<Value> split_from_right(Runtime& runtime, const StringData& text,
                                    const Value* separator, std::int64_t limit) {
  if (limit < 0) return split(runtime, text, separator, limit);
  std::vector<Value> parts;
  const auto add = [&](std::size_t begin, std::size_t end) {
    runtime.budget.step();
    parts.push_back(slice_text(text, begin, end, &runtime.budget));
  };
  const std::string& all = text.text;
  std::size_t end = all.size();
  if (separator != nullptr) {
    const std::string& mark = text_argument(*separator, "rsplit").text;
    if (mark.empty()) raise(FaultKind::kValue, "empty separator");
    for (; limit != 0; --limit) {
      runtime.budget.search(2 * end);
      const std::size_t at = find_last_text(std::string_view(all).substr(0, end), mark);
      if (at == std::string_view::npos) break;
      add(at + mark.size(), end);
      end = at;
    }
    add(0, end);
  } else {
    runtime.budget.characters(all.size());
    while (true) {
      end = trim_right(std::string_view(all).substr(0, end)).size();
      if (end == 0) break;
      std::size_t begin = end;
      while (begin > 0 && (limit == 0 || !is_space(code_point_before(all, begin).code))) {
        begin -= code_point_before(all, begin).length;
      }
      if (limit == 0) {
        begin = 0;
        while (begin < end && is_space(code_point_at(all, begin).code)) {
          begin += code_point_at(all, begin).length;
        }
      }
      add(begin, end);
      if (limit == 0) break;
      --limit;
      end = begin;
    }
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Value> split_lines(Runtime& runtime, const StringData& text, bool keep_ends) {
  std::vector<Value> lines;
  const std::string& all = text.text;
  runtime.budget.characters(all.size());
  std::size_t begin = 0;
  for (std::size_t i = 0; i < all.size();) {
    const CodePoint point = code_point_at(all, i);
    const std::size_t end = i;
    i += point.length;
    if (!is_line_end(point.code)) continue;
    if (point.code == '\r' && i < all.size() && all[i] == '\n') ++i;
    runtime.budget.step();
    lines.push_back(slice_text(text, begin, keep_ends ? i : end, &runtime.budget));
    begin = i;
  }
  if (begin < all.size()) {
    lines.push_back(slice_text(text, begin, all.size(), &runtime.budget));
  }
  return lines;
}

std::string repeat_fill(std::string_view fill, std::size_t count) {
  if (fill.size() == 1) return std::string(count, fill.front());
  std::string run;
  run.reserve(fill.size() * count);
  for (std::size_t i = 0; i < count; ++i) run += fill;
  return run;
}

Value pad(Runtime& runtime, const StringData& text, std::int64_t width, std::string_view fill,
          bool left, bool right) {
  const auto length = static_cast<std::int64_t>(text.length);
  TextBuilder out(&runtime.budget);
  const std::int64_t space = width > length ? width - length : 0;
  if (space > static_cast<std::int64_t>(kMaxStringBytes / fill.size())) {
    raise(FaultKind::kLimit, "the template makes a text of more than {} MiB",
          kMaxStringBytes >> 20);
  }
  // Both sides: the odd one goes left when the width is odd, as in str.center.
  const std::int64_t before = !left ? 0 : !right ? space : space / 2 + (space & width & 1);
  const auto blanks = [&](std::int64_t count) {
    out.append(repeat_fill(fill, static_cast<std::size_t>(count)));
  };
  blanks(before);
  out.append(text);
  blanks(space - before);
  return out.finish(text.markup);
}

}  // namespace tern::text::jinja
