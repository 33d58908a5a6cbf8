// How filters, tests, methods and global functions are described: one table row each.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat_template/clock.h"
#include "text/chat_template/value.h"

namespace tern::text::jinja {

// What a call passes, in the order written.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The state of one rendering that functions may need.
struct Runtime {
  Budget& budget;
  Clock now;
  // Namespaces live as long as the rendering: they may refer to each other in circles.
  std::vector<std::unique_ptr<NamespaceData>> namespaces;
  int callbacks = 0;  // filters that were called by filters and have not returned
};

inline constexpr std::size_t kMaxParameters = 5;

// Arguments brought into the order of the parameters; absent ones are null.
class Bound {
 public:
  Bound(const Arguments& arguments) : raw_(arguments) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] const Value* operator[](std::size_t i) const { return values_[i]; }
  [[nodiscard]] const Arguments& raw() const { return raw_; }
  [[nodiscard]] bool flag(std::size_t i, bool otherwise) const;
  // The argument unless it is absent or none.
  [[nodiscard]] const Value* given(std::size_t i) const;

 private:
  friend Bound bind(const struct NativeRow& row, const Arguments& arguments);
  const Arguments& raw_;
  std::array<const Value*, kMaxParameters> values_{};
};

// `subject` is the value on the left: of the |, of `is`, of the dot.
using NativeFn = Value (*)(Runtime& runtime, const Value& subject, const Bound& arguments);

struct NativeRow {
  std::string_view name;
  NativeFn function;
  int required = 0;  // leading parameters without a default; kVariadic: the function takes them raw
  std::array<std::string_view, kMaxParameters> parameters{};
};
inline constexpr int kVariadic = -1;

// A function as a value: a global, or a method with the value it was taken from.
struct FunctionData final : Object {
  FunctionData(Budget* owner, const NativeRow& what, Value of)
      : Object(owner, sizeof(FunctionData), of.depth() + 1), row(what), self(std::move(of)) {}
  const NativeRow& row;
  const Value self;
};

// Puts arguments to their parameters; a TypeError for too many, unknown or missing ones.
[[nodiscard]] Bound bind(const NativeRow& row, const Arguments& arguments);
[[nodiscard]] Value call_native(Runtime& runtime, const NativeRow& row, const Value& subject,
                                const Arguments& arguments);

// Rows are sorted by name.
[[nodiscard]] const NativeRow* find_row(std::span<const NativeRow> rows, std::string_view name);
template <std::size_t n>
constexpr bool is_sorted(const std::array<NativeRow, n>& rows) {
  for (std::size_t i = 1; i < n; ++i) {
    if (!(rows[i - 1].name < rows[i].name)) return false;
  }
  return true;
}

[[nodiscard]] const NativeRow* find_filter(std::string_view name);
[[nodiscard]] const NativeRow* find_test(std::string_view name);
[[nodiscard]] const NativeRow* find_global(std::string_view name);
// Method of a value's type; `changes_object` when it exists but would change its object.
[[nodiscard]] const NativeRow* find_method(const Value& subject, std::string_view name,
                                           bool& changes_object);

// Names of namespace attributes do not begin with an underscore.
void require_namespace_name(std::string_view name);

// x.name and x[key] with all fallbacks: undefined when there is nothing.
[[nodiscard]] Value get_attribute(Runtime& runtime, const Value& subject, std::string_view name);
[[nodiscard]] Value get_item(Runtime& runtime, const Value& subject, const Value& key);

}  // namespace tern::text::jinja
