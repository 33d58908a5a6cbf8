// Many strings in one block of memory, and an index from string to number: a vocabulary costs its
// bytes and a few words per entry, whatever a file claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
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
// must be the one that the numbers came from. The hash spreads ordinary strings; a file whose
// strings all have one hash makes a lookup a binary search, and nothing slower than that.
class StringIndex {
 public:
  StringIndex() : first_(2, 0) {}  // of no strings
  // Of equal strings the one with the lowest number is found.
  StringIndex(const StringTable& table, std::span<const std::int32_t> numbers);

  [[nodiscard]] std::optional<std::int32_t> find(const StringTable& table,
                                                 std::string_view string) const;
  // The lowest number whose string has a lower number too.
  [[nodiscard]] std::optional<std::int32_t> first_duplicate() const { return first_duplicate_; }

 private:
  struct Entry {
    std::uint32_t hash;
    std::int32_t number;
  };
  [[nodiscard]] std::size_t bucket_of(std::uint32_t hash) const {
    return bits_ == 0 ? 0 : hash >> (32 - bits_);
  }
  void sort_buckets(const StringTable& table);

  int bits_ = 0;                      // of the hash, that name a bucket
  std::vector<Entry> entries_;        // by hash, then by string
  std::vector<std::uint32_t> first_;  // [2^bits + 1]: entries of a bucket
  std::optional<std::int32_t> first_duplicate_;
};

}  // namespace tern::text
