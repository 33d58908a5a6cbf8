// The index over a StringTable: open addressing with linear probing.
#include "text/string_table.h"

#include <bit>
#include <functional>

#include "base/error.h"

namespace tern::text {

StringIndex::StringIndex(std::size_t strings)
    : slots_(std::bit_ceil(2 * strings + 2), std::int32_t{-1}) {}

std::size_t StringIndex::slot_of(const StringTable& table, std::string_view string) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = std::hash<std::string_view>{}(string)&mask;
  while (slots_[slot] >= 0 && table[static_cast<std::size_t>(slots_[slot])] != string) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

bool StringIndex::add(const StringTable& table, std::int32_t number) {
  TERN_ASSERT(number >= 0);
  const std::size_t slot = slot_of(table, table[static_cast<std::size_t>(number)]);
  if (slots_[slot] >= 0) return false;
  slots_[slot] = number;
  return true;
}

std::optional<std::int32_t> StringIndex::find(const StringTable& table,
                                              std::string_view string) const {
  const std::int32_t number = slots_[slot_of(table, string)];
  if (number < 0) return std::nullopt;
  return number;
}

}  // namespace tern::text
