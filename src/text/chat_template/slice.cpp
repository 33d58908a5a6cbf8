// x[start:stop:step].
#include "text/chat_template/slice.h"

#include <algorithm>

#include "text/chat_template/characters.h"
#include "text/chat_template/compare.h"
#include "text/chat_template/iterate.h"
#include "text/chat_template/text_builder.h"

namespace tern::text::jinja {
namespace {

// Positions start, start + step, ...; `count` of them, all inside of the subject.
struct Span {
  std::int64_t start;
  std::int64_t step;
  std::int64_t count;
};

bool is_absent(const Value& part) { return part.is_missing() || part.is_none(); }

// A bound as given, counted from the end when negative, cut to [low, high].
std::int64_t bound(const Value& part, std::int64_t otherwise, std::int64_t length, std::int64_t low,
                   std::int64_t high) {
  if (is_absent(part)) return otherwise;
  std::int64_t at = part.as_integer();
  if (at < 0) at = at < -length ? low : at + length;
  return std::clamp(at, low, high);
}

Span span_of(std::int64_t length, const Value& start, const Value& stop, const Value& step) {
  const std::int64_t by = is_absent(step) ? 1 : step.as_integer();
  if (by == 0) raise(FaultKind::kValue, "slice step cannot be zero");
  const std::int64_t low = by > 0 ? 0 : -1;
  const std::int64_t high = by > 0 ? length : length - 1;
  const std::int64_t from = bound(start, by > 0 ? low : high, length, low, high);
  const std::int64_t to = bound(stop, by > 0 ? high : low, length, low, high);
  const std::int64_t distance = by > 0 ? to - from : from - to;
  if (distance <= 0) return {0, by, 0};
  // |step| as unsigned, since it may be the smallest integer.
  const auto stride =
      by > 0 ? static_cast<std::uint64_t>(by) : std::uint64_t{0} - static_cast<std::uint64_t>(by);
  const std::uint64_t count = (static_cast<std::uint64_t>(distance) - 1) / stride + 1;
  return {from, by, static_cast<std::int64_t>(count)};
}

Value slice_string(Runtime& runtime, const StringData& text, const Span& span) {
  TextBuilder out(&runtime.budget);
  if (span.count == 0) return out.finish(text.markup);
  if (span.step == 1) {
    runtime.budget.search(text.ascii() ? 0 : text.text.size());
    const auto first = static_cast<std::size_t>(span.start);
    const auto count = static_cast<std::size_t>(span.count);
    const std::size_t begin = text.ascii() ? first : byte_position(text.text, first);
    const std::size_t end =
        text.ascii() ? begin + count
                     : begin + byte_position(std::string_view(text.text).substr(begin), count);
    return slice_text(text, begin, end, &runtime.budget);
  }
  // Where each code point begins, then the ones that are wanted.
  std::vector<std::size_t> starts;
  runtime.budget.items(text.length);
  runtime.budget.hold(text.length * sizeof(std::size_t));
  starts.reserve(text.length + 1);
  for (std::size_t i = 0; i < text.text.size(); i += code_point_at(text.text, i).length) {
    starts.push_back(i);
  }
  starts.push_back(text.text.size());
  runtime.budget.release(text.length * sizeof(std::size_t));
  for (std::int64_t i = 0; i < span.count; ++i) {
    const auto at = static_cast<std::size_t>(span.start + i * span.step);
    out.append(text, starts[at], starts[at + 1]);
  }
  return out.finish(text.markup);
}

Value slice_items(Runtime& runtime, const Value& subject, const Span& span) {
  const std::vector<Value>& all = subject.items();
  runtime.budget.items(static_cast<std::size_t>(span.count));
  std::vector<Value> items;
  items.reserve(static_cast<std::size_t>(span.count));
  for (std::int64_t i = 0; i < span.count; ++i) {
    items.push_back(all[static_cast<std::size_t>(span.start + i * span.step)]);
  }
  return subject.is(Kind::kList) ? Value::list(std::move(items), &runtime.budget)
                                 : Value::tuple(std::move(items), &runtime.budget);
}

}  // namespace

Value slice(Runtime& runtime, const Value& subject, const Value& start, const Value& stop,
            const Value& step) {
  require_defined(subject);
  if (subject.is_dict()) raise(FaultKind::kType, "unhashable type: 'slice'");
  if (!subject.is_string() && !subject.is_sequence() && !subject.is(Kind::kRange)) {
    raise(FaultKind::kType, "'{}' object is not subscriptable", type_name(subject));
  }
  for (const Value* part : {&start, &stop, &step}) {
    if (is_absent(*part) || part->is_integer()) continue;
    raise(FaultKind::kType, "slice indices must be integers or None, not {}", type_name(*part));
  }
  if (subject.is(Kind::kRange)) {
    const Value items = Value::list(to_vector(subject, &runtime.budget), &runtime.budget);
    return slice(runtime, items, start, stop, step);
  }
  const Span span = span_of(length_of(subject), start, stop, step);
  if (subject.is_string()) return slice_string(runtime, subject.string(), span);
  return slice_items(runtime, subject, span);
}

}  // namespace tern::text::jinja
