// Many strings in one block of memory, and an index from string to number: a vocabulary costs its
// bytes and a few words per entry, whatever a file claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tern::text {

class StringTable {
 public:
  StringTable() = default;
  StringTable(std::initializer_list<std::string_view> strings) {
    for (const std::string_view s : strings) add(s);
  }

  void reserve(std::size_t strings, std::size_t bytes) {
    ends_.reserve(strings);
    bytes_.reserve(bytes);
  }
  void add(std::string_view string) {
    bytes_.append(string);
    ends_.push_back(bytes_.size());
  }
  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  // The view ends with the table, or with the next add().
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    TERN_ASSERT(i < ends_.size());
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

// Finds strings of a table by content. Holds numbers only: the table is given with each call and
// must be the one that the numbers came from.
class StringIndex {
 public:
  // Room for up to `strings` entries.
  explicit StringIndex(std::size_t strings = 0);

  // Enters table[number]; where an equal string is in the index already, that one stays and false
  // is returned.
  bool add(const StringTable& table, std::int32_t number);
  [[nodiscard]] std::optional<std::int32_t> find(const StringTable& table,
                                                 std::string_view string) const;

 private:
  [[nodiscard]] std::size_t slot_of(const StringTable& table, std::string_view string) const;

  std::vector<std::int32_t> slots_;  // a power of two, at most half full; -1: free
};

}  // namespace tern::text
