// The index over a StringTable: sorted by hash and string, with a directory by the first bits.
#include "text/string_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <tuple>

namespace tern::text {
namespace {

std::uint32_t hash_of(std::string_view string) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(string));
}

}  // namespace

StringIndex::StringIndex(const StringTable& table, std::span<const std::int32_t> numbers)
    : bits_(std::min(static_cast<int>(std::bit_width(numbers.size())), 24)) {
  entries_.reserve(numbers.size());
  for (const std::int32_t number : numbers) {
    TERN_ASSERT(number >= 0);
    entries_.push_back({hash_of(table[static_cast<std::size_t>(number)]), number});
  }
  const auto string_of = [&](const Entry& entry) {
    return table[static_cast<std::size_t>(entry.number)];
  };
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
    if (a.hash != b.hash) return a.hash < b.hash;
    return std::tuple(string_of(a), a.number) < std::tuple(string_of(b), b.number);
  });
  // Of equal strings the first stays.
  auto kept = entries_.begin();
  for (const Entry& entry : entries_) {
    const bool is_again = kept != entries_.begin() && std::prev(kept)->hash == entry.hash &&
                          string_of(*std::prev(kept)) == string_of(entry);
    if (!is_again) {
      *kept++ = entry;
    } else if (!first_duplicate_ || entry.number < *first_duplicate_) {
      first_duplicate_ = entry.number;
    }
  }
  entries_.erase(kept, entries_.end());
  first_.assign((std::size_t{1} << bits_) + 1, 0);
  for (const Entry& entry : entries_) ++first_[bucket_of(entry.hash) + 1];
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
}

std::optional<std::int32_t> StringIndex::find(const StringTable& table,
                                              std::string_view string) const {
  const std::uint32_t hash = hash_of(string);
  const std::size_t bucket = bucket_of(hash);
  const Entry* const end = entries_.data() + first_[bucket + 1];
  const Entry* const at = std::lower_bound(
      entries_.data() + first_[bucket], end, string, [&](const Entry& entry, std::string_view s) {
        if (entry.hash != hash) return entry.hash < hash;
        return table[static_cast<std::size_t>(entry.number)] < s;
      });
  if (at == end || at->hash != hash || table[static_cast<std::size_t>(at->number)] != string) {
    return std::nullopt;
  }
  return at->number;
}

}  // namespace tern::text
