// The methods of texts: Python's str, but for encoding and translation tables.
#include "text/chat_template/methods_text.h"

#include <algorithm>

#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/escape.h"
#include "text/chat_template/format.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/operators.h"
#include "text/chat_template/text_functions.h"

namespace tern::text::jinja {
namespace {

using Args = Bound;

std::int64_t count_or(const Args& arguments, std::size_t i, std::int64_t otherwise) {
  return arguments[i] == nullptr ? otherwise : to_index(*arguments[i]);
}

template <Value (*function)(Runtime&, const StringData&)>
Value whole(Runtime& runtime, const Value& self, const Args& /*arguments*/) {
  return function(runtime, self.string());
}

template <bool left, bool right>
Value strip_method(Runtime& runtime, const Value& self, const Args& arguments) {
  return strip(runtime, self.string(), arguments.given(0), left, right);
}

template <bool left, bool right>
Value pad_method(Runtime& runtime, const Value& self, const Args& arguments) {
  std::string_view fill = " ";
  if (arguments[1] != nullptr) {
    const StringData& given = text_argument(*arguments[1], "ljust");
    if (given.length != 1) {
      raise(FaultKind::kType, "The fill character must be exactly one character long");
    }
    fill = given.text;
  }
  return pad(runtime, self.string(), to_index(*arguments[0]), fill, left, right);
}

// The part of a text between two positions in code points, as start and end of find() mean it.
struct Part {
  std::string_view text;
  std::int64_t first;  // code points before it
  bool exists;         // false: start lies behind the end of the text
};

Part part_of(Runtime& runtime, const StringData& text, const Args& arguments, std::size_t i) {
  const auto length = static_cast<std::int64_t>(text.length);
  const auto position = [&](std::size_t at, std::int64_t otherwise) {
    const Value* given = arguments.given(at);
    if (given == nullptr) return otherwise;
    const std::int64_t index = to_index(*given);
    return index >= 0 ? index : index < -length ? 0 : index + length;
  };
  const std::int64_t start = position(i, 0);
  const std::int64_t end = std::min(position(i + 1, length), length);
  if (start > length || end < start) return {{}, start, start <= length && end == start};
  if (start == 0 && end == length) return {text.text, 0, true};
  if (text.ascii()) {
    return {std::string_view(text.text).substr(static_cast<std::size_t>(start),
                                               static_cast<std::size_t>(end - start)),
            start, true};
  }
  runtime.budget.search(text.text.size());
  const std::size_t begin = byte_position(text.text, static_cast<std::size_t>(start));
  const std::string_view rest = std::string_view(text.text).substr(begin);
  return {rest.substr(0, byte_position(rest, static_cast<std::size_t>(end - start))), start, true};
}

std::int64_t find_in(Runtime& runtime, const Value& self, const Args& arguments, bool last) {
  const std::string& needle = text_argument(*arguments[0], "find").text;
  const Part part = part_of(runtime, self.string(), arguments, 1);
  if (!part.exists) return -1;
  // Searching from the end copies the text first.
  runtime.budget.search((last ? 2 : 1) * (part.text.size() + needle.size()));
  const std::size_t at = last ? find_last_text(part.text, needle) : find_text(part.text, needle);
  if (at == std::string_view::npos) return -1;
  return part.first + static_cast<std::int64_t>(count_code_points(part.text.substr(0, at)));
}

template <bool last>
Value find_method(Runtime& runtime, const Value& self, const Args& arguments) {
  return Value::integer(find_in(runtime, self, arguments, last));
}

template <bool last>
Value index_method(Runtime& runtime, const Value& self, const Args& arguments) {
  const std::int64_t at = find_in(runtime, self, arguments, last);
  if (at < 0) raise(FaultKind::kValue, "substring not found");
  return Value::integer(at);
}

Value count(Runtime& runtime, const Value& self, const Args& arguments) {
  const std::string& needle = text_argument(*arguments[0], "count").text;
  const Part part = part_of(runtime, self.string(), arguments, 1);
  if (!part.exists) return Value::integer(0);
  runtime.budget.search(part.text.size() + needle.size());
  if (needle.empty()) {
    return Value::integer(static_cast<std::int64_t>(count_code_points(part.text)) + 1);
  }
  std::int64_t found = 0;
  std::size_t at = 0;
  while ((at = find_text(part.text, needle, at)) != std::string_view::npos) {
    runtime.budget.items(1);
    ++found;
    at += needle.size();
  }
  return Value::integer(found);
}

template <bool at_end>
Value starts_or_ends(Runtime& runtime, const Value& self, const Args& arguments) {
  const Part part = part_of(runtime, self.string(), arguments, 1);
  const auto fits = [&](const Value& with) {
    const std::string& affix = text_argument(with, at_end ? "endswith" : "startswith").text;
    runtime.budget.bytes(affix.size());
    return part.exists && (at_end ? part.text.ends_with(affix) : part.text.starts_with(affix));
  };
  if (!arguments[0]->is(Kind::kTuple)) return Value::boolean(fits(*arguments[0]));
  const std::vector<Value>& choices = arguments[0]->items();
  runtime.budget.items(choices.size());
  return Value::boolean(std::any_of(choices.begin(), choices.end(), fits));
}

Value replace_method(Runtime& runtime, const Value& self, const Args& arguments) {
  return replace(runtime, self.string(), text_argument(*arguments[0], "replace"),
                 text_argument(*arguments[1], "replace"), count_or(arguments, 2, -1));
}

template <bool from_right>
Value split_method(Runtime& runtime, const Value& self, const Args& arguments) {
  const std::int64_t limit = count_or(arguments, 1, -1);
  return Value::list(from_right
                         ? split_from_right(runtime, self.string(), arguments.given(0), limit)
                         : split(runtime, self.string(), arguments.given(0), limit),
                     &runtime.budget);
}

Value splitlines(Runtime& runtime, const Value& self, const Args& arguments) {
  return Value::list(split_lines(runtime, self.string(), arguments.flag(0, false)),
                     &runtime.budget);
}

template <bool last>
Value partition(Runtime& runtime, const Value& self, const Args& arguments) {
  const StringData& text = self.string();
  const StringData& mark = text_argument(*arguments[0], "partition");
  if (mark.text.empty()) raise(FaultKind::kValue, "empty separator");
  runtime.budget.search((last ? 2 : 1) * (text.text.size() + mark.text.size()));
  const std::size_t at =
      last ? find_last_text(text.text, mark.text) : find_text(text.text, mark.text);
  const Value empty = Value::string("", Origin::kTemplate);
  if (at == std::string_view::npos) {
    return Value::tuple(
        last ? std::vector<Value>{empty, empty, self} : std::vector<Value>{self, empty, empty},
        &runtime.budget);
  }
  return Value::tuple({slice_text(text, 0, at, &runtime.budget), *arguments[0],
                       slice_text(text, at + mark.text.size(), text.text.size(), &runtime.budget)},
                      &runtime.budget);
}

Value join(Runtime& runtime, const Value& self, const Args& arguments) {
  TextBuilder out(&runtime.budget);
  Iteration walk(*arguments[0], &runtime.budget);
  Value item;
  for (std::size_t i = 0; walk.next(item); ++i) {
    if (!item.is_string()) {
      raise(FaultKind::kType, "sequence item {}: expected str instance, {} found", i,
            type_name(item));
    }
    if (i > 0) out.append(self.string());
    if (self.string().markup) {
      append_escaped(out, item.string());
    } else {
      out.append(item.string());
    }
  }
  return out.finish(self.string().markup);
}

Value remove_prefix(Runtime& runtime, const Value& self, const Args& arguments) {
  const std::string& prefix = text_argument(*arguments[0], "removeprefix").text;
  const StringData& text = self.string();
  runtime.budget.bytes(prefix.size());
  if (!text.text.starts_with(prefix)) return self;
  return slice_text(text, prefix.size(), text.text.size(), &runtime.budget);
}

Value remove_suffix(Runtime& runtime, const Value& self, const Args& arguments) {
  const std::string& suffix = text_argument(*arguments[0], "removesuffix").text;
  const StringData& text = self.string();
  runtime.budget.bytes(suffix.size());
  if (!text.text.ends_with(suffix)) return self;
  return slice_text(text, 0, text.text.size() - suffix.size(), &runtime.budget);
}

Value format_method(Runtime& runtime, const Value& self, const Args& arguments) {
  return brace_format(runtime, self, arguments.raw());
}

// True for a text that is not empty and whose characters all pass.
template <bool (*passes)(char32_t)>
Value all_pass(Runtime& runtime, const Value& self, const Args& /*arguments*/) {
  const std::string& text = self.string().text;
  runtime.budget.characters(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    if (!passes(point.code)) return Value::boolean(false);
    i += point.length;
  }
  return Value::boolean(!text.empty());
}

bool is_letter_or_number(char32_t code) {
  return is_letter(code) || is_numeric(code) || is_digit(code);
}

template <const char* test>
Value by_test(Runtime& runtime, const Value& self, const Args& /*arguments*/) {
  return call_native(runtime, *find_test(test), self, {});
}
constexpr char kLower[] = "lower";
constexpr char kUpper[] = "upper";

Value is_ascii_text(Runtime& /*runtime*/, const Value& self, const Args& /*arguments*/) {
  return Value::boolean(self.string().ascii());
}

Value is_printable_text(Runtime& runtime, const Value& self, const Args& arguments) {
  if (self.text().empty()) return Value::boolean(true);
  return all_pass<is_printable>(runtime, self, arguments);
}

Value is_identifier(Runtime& runtime, const Value& self, const Args& arguments) {
  const std::string_view text = self.text();
  if (text.empty() || is_numeric(code_point_at(text, 0).code)) return Value::boolean(false);
  return all_pass<is_word>(runtime, self, arguments);
}

Value is_title_text(Runtime& runtime, const Value& self, const Args& /*arguments*/) {
  const std::string& text = self.string().text;
  runtime.budget.characters(text.size());
  bool after_letter = false;
  bool any = false;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    i += point.length;
    const bool capital = is_upper(point.code) || is_title(point.code);
    const bool small = is_lower(point.code);
    if ((capital && after_letter) || (small && !after_letter)) return Value::boolean(false);
    after_letter = capital || small;
    any = any || after_letter;
  }
  return Value::boolean(any);
}

Value zero_fill(Runtime& runtime, const Value& self, const Args& arguments) {
  const StringData& text = self.string();
  const bool has_sign = text.text.starts_with('+') || text.text.starts_with('-');
  const Value digits = slice_text(text, has_sign ? 1 : 0, text.text.size(), &runtime.budget);
  const Value padded =
      pad(runtime, digits.string(), to_index(*arguments[0]) - (has_sign ? 1 : 0), "0", true, false);
  TextBuilder out(&runtime.budget);
  out.append(text, 0, has_sign ? 1 : 0);
  out.append(padded.string());
  return out.finish(text.markup);
}

Value expand_tabs(Runtime& runtime, const Value& self, const Args& arguments) {
  const StringData& text = self.string();
  const std::int64_t size = std::min<std::int64_t>(count_or(arguments, 0, 8), 1 << 16);
  runtime.budget.characters(text.text.size());
  TextBuilder out(&runtime.budget);
  std::int64_t column = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.text.size();) {
    const CodePoint point = code_point_at(text.text, i);
    if (point.code == '\t') {
      out.append(text, begin, i);
      const std::int64_t blanks = size > 0 ? size - column % size : 0;
      out.append(std::string(static_cast<std::size_t>(blanks), ' '));
      column += blanks;
      begin = i + 1;
    } else {
      column = point.code == '\n' || point.code == '\r' ? 0 : column + 1;
    }
    i += point.length;
  }
  out.append(text, begin, text.text.size());
  return out.finish(text.markup);
}

constexpr std::array kMethods = {
    NativeRow{"capitalize", whole<capitalize>, 0, {}},
    NativeRow{"casefold", whole<lower>, 0, {}},
    NativeRow{"center", pad_method<true, true>, 1, {"width", "fillchar"}},
    NativeRow{"count", count, 1, {"sub", "start", "end"}},
    NativeRow{"endswith", starts_or_ends<true>, 1, {"suffix", "start", "end"}},
    NativeRow{"expandtabs", expand_tabs, 0, {"tabsize"}},
    NativeRow{"find", find_method<false>, 1, {"sub", "start", "end"}},
    NativeRow{"format", format_method, kVariadic, {}},
    NativeRow{"index", index_method<false>, 1, {"sub", "start", "end"}},
    NativeRow{"isalnum", all_pass<is_letter_or_number>, 0, {}},
    NativeRow{"isalpha", all_pass<is_letter>, 0, {}},
    NativeRow{"isascii", is_ascii_text, 0, {}},
    NativeRow{"isdecimal", all_pass<is_decimal>, 0, {}},
    NativeRow{"isdigit", all_pass<is_digit>, 0, {}},
    NativeRow{"isidentifier", is_identifier, 0, {}},
    NativeRow{"islower", by_test<kLower>, 0, {}},
    NativeRow{"isnumeric", all_pass<is_numeric>, 0, {}},
    NativeRow{"isprintable", is_printable_text, 0, {}},
    NativeRow{"isspace", all_pass<is_space>, 0, {}},
    NativeRow{"istitle", is_title_text, 0, {}},
    NativeRow{"isupper", by_test<kUpper>, 0, {}},
    NativeRow{"join", join, 1, {"iterable"}},
    NativeRow{"ljust", pad_method<false, true>, 1, {"width", "fillchar"}},
    NativeRow{"lower", whole<lower>, 0, {}},
    NativeRow{"lstrip", strip_method<true, false>, 0, {"chars"}},
    NativeRow{"partition", partition<false>, 1, {"sep"}},
    NativeRow{"removeprefix", remove_prefix, 1, {"prefix"}},
    NativeRow{"removesuffix", remove_suffix, 1, {"suffix"}},
    NativeRow{"replace", replace_method, 2, {"old", "new", "count"}},
    NativeRow{"rfind", find_method<true>, 1, {"sub", "start", "end"}},
    NativeRow{"rindex", index_method<true>, 1, {"sub", "start", "end"}},
    NativeRow{"rjust", pad_method<true, false>, 1, {"width", "fillchar"}},
    NativeRow{"rpartition", partition<true>, 1, {"sep"}},
    NativeRow{"rsplit", split_method<true>, 0, {"sep", "maxsplit"}},
    NativeRow{"rstrip", strip_method<false, true>, 0, {"chars"}},
    NativeRow{"split", split_method<false>, 0, {"sep", "maxsplit"}},
    NativeRow{"splitlines", splitlines, 0, {"keepends"}},
    NativeRow{"startswith", starts_or_ends<false>, 1, {"prefix", "start", "end"}},
    NativeRow{"strip", strip_method<true, true>, 0, {"chars"}},
    NativeRow{"swapcase", whole<swap_case>, 0, {}},
    NativeRow{"title", whole<title>, 0, {}},
    NativeRow{"upper", whole<upper>, 0, {}},
    NativeRow{"zfill", zero_fill, 1, {"width"}},
};
static_assert(is_sorted(kMethods));

}  // namespace

std::span<const NativeRow> text_methods() { return kMethods; }

}  // namespace tern::text::jinja
