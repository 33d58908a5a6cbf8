// Walking through whatever a `for` accepts.
#pragma once

#include <optional>

#include "text/chat_template/value.h"

namespace tern::text::jinja {

// One walk over a value: lists, tuples, keys of a dictionary, characters of a text, ranges, views,
// generators (which it uses up), and nothing for undefined. Other values are a TypeError.
class Iteration {
 public:
  Iteration(Value subject, Budget* budget);
  [[nodiscard]] bool next(Value& item);
  // Number of items in all, where it is known without walking.
  [[nodiscard]] std::optional<std::int64_t> size() const;

 private:
  [[nodiscard]] bool next_in_dict(Value& item);
  [[nodiscard]] bool next_in_view(Value& item);

  Value subject_;
  Budget* budget_;
  std::size_t position_ = 0;
};

// All items, in order. The budget pays for each.
[[nodiscard]] std::vector<Value> to_vector(const Value& subject, Budget* budget);

// Item number index < count.
[[nodiscard]] Value range_item(const RangeData& range, std::size_t index);
[[nodiscard]] bool is_iterable(const Value& value);
// len(): a TypeError for values without one.
[[nodiscard]] std::int64_t length_of(const Value& value);
// A piece of a text with its origins; positions are bytes.
[[nodiscard]] Value slice_text(const StringData& text, std::size_t begin, std::size_t end,
                               Budget* budget);

}  // namespace tern::text::jinja
