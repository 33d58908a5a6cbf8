// Text tables: columns as wide as what is in them, aligned left or right.
#pragma once

#include <string>
#include <vector>

namespace tern::cli {

class Table {
 public:
  // A name that begins with '>' is aligned right.
  explicit Table(const std::vector<std::string>& columns);
  void add(std::vector<std::string> cells);
  // Every line begins with `indent`; the last column is not padded.
  [[nodiscard]] std::string text(std::string_view indent) const;

 private:
  std::vector<bool> is_right_;
  std::vector<std::vector<std::string>> rows_;
};

// Characters, not bytes.
[[nodiscard]] std::size_t width_of(std::string_view text);
// Padded with spaces to `width` characters.
[[nodiscard]] std::string padded(std::string_view text, std::size_t width, bool is_right);

}  // namespace tern::cli
