// Calling functions of the engine: arguments to parameters, rows to names.
#include "text/chat_template/native.h"

#include <algorithm>

#include "text/chat_template/compare.h"
#include "text/chat_template/print.h"

namespace tern::text::jinja {

bool Bound::flag(std::size_t i, bool otherwise) const {
  return values_[i] == nullptr ? otherwise : truth(*values_[i]);
}

const Value* Bound::given(std::size_t i) const {
  return values_[i] == nullptr || values_[i]->is_none() ? nullptr : values_[i];
}

Bound bind(const NativeRow& row, const Arguments& arguments) {
  Bound bound(arguments);
  if (row.required == kVariadic) return bound;
  std::size_t count = 0;
  while (count < kMaxParameters && !row.parameters[count].empty()) ++count;
  if (arguments.positional.size() > count) {
    raise(FaultKind::kType, "{}() takes at most {} argument(s) but {} were given", row.name, count,
          arguments.positional.size());
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    bound.values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto* const end = row.parameters.begin() + count;
    const auto* const at = std::find(row.parameters.begin(), end, name);
    if (at == end) {
      raise(FaultKind::kType, "{}() got an unexpected keyword argument {}", row.name, quote(name));
    }
    const Value*& slot = bound.values_[static_cast<std::size_t>(at - row.parameters.begin())];
    if (slot != nullptr) {
      raise(FaultKind::kType, "{}() got multiple values for argument {}", row.name, quote(name));
    }
    slot = &value;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(row.required); ++i) {
    if (bound.values_[i] == nullptr) {
      raise(FaultKind::kType, "{}() is missing its argument {}", row.name,
            quote(row.parameters[i]));
    }
  }
  return bound;
}

Value call_native(Runtime& runtime, const NativeRow& row, const Value& subject,
                  const Arguments& arguments) {
  return row.function(runtime, subject, bind(row, arguments));
}

const NativeRow* find_row(std::span<const NativeRow> rows, std::string_view name) {
  const auto row =
      std::lower_bound(rows.begin(), rows.end(), name,
                       [](const NativeRow& a, std::string_view b) { return a.name < b; });
  return row != rows.end() && row->name == name ? &*row : nullptr;
}

}  // namespace tern::text::jinja
