// Measures all cells, then prints.
#include "cli/table.h"

#include <algorithm>

namespace tern::cli {

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
  }));
}

std::string padded(std::string_view text, std::size_t width, bool is_right) {
  const std::size_t own = width_of(text);
  const std::string space(width > own ? width - own : 0, ' ');
  return is_right ? space + std::string(text) : std::string(text) + space;
}

Table::Table(const std::vector<std::string>& columns) {
  std::vector<std::string> names;
  for (const std::string& column : columns) {
    const bool is_right = !column.empty() && column[0] == '>';
    is_right_.push_back(is_right);
    names.push_back(is_right ? column.substr(1) : column);
  }
  rows_.push_back(std::move(names));
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(is_right_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::string_view indent) const {
  std::vector<std::size_t> widths(is_right_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += (i > 0 ? "  " : "") + padded(row[i], widths[i], is_right_[i]);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace tern::cli
