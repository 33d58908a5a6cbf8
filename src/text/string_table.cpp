// The index over a StringTable: buckets by the first bits of a hash, sorted by hash and string.
#include "text/string_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <tuple>
#include <utility>

namespace tern::text {
namespace {

// 2^24 buckets for the 2^22 strings that a vocabulary has at most: more would only take memory.
constexpr int kMostBucketBits = 24;

std::uint32_t hash_of(std::string_view string) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(string));
}

}  // namespace

StringIndex::StringIndex(const StringTable& table, std::span<const std::int32_t> numbers)
    : bits_(std::min(static_cast<int>(std::bit_width(numbers.size())), kMostBucketBits)),
      first_((std::size_t{1} << bits_) + 1, 0) {
  std::vector<std::uint32_t> hashes;
  hashes.reserve(numbers.size());
  for (const std::int32_t number : numbers) {
    TERN_ASSERT(number >= 0);
    hashes.push_back(hash_of(table[static_cast<std::size_t>(number)]));
    ++first_[bucket_of(hashes.back()) + 1];
  }
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  entries_.resize(numbers.size());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    entries_[next[bucket_of(hashes[i])]++] = {hashes[i], numbers[i]};
  }
  sort_buckets(table);
}

// Sorts each bucket; of equal strings the first stays.
void StringIndex::sort_buckets(const StringTable& table) {
  const auto string_of = [&](const Entry& entry) {
    return table[static_cast<std::size_t>(entry.number)];
  };
  const auto is_before = [&](const Entry& a, const Entry& b) {
    if (a.hash != b.hash) return a.hash < b.hash;
    return std::tuple(string_of(a), a.number) < std::tuple(string_of(b), b.number);
  };
  std::uint32_t kept = 0;
  for (std::size_t bucket = 0; bucket + 1 < first_.size(); ++bucket) {
    const auto begin = entries_.begin() + std::exchange(first_[bucket], kept);
    const auto end = entries_.begin() + first_[bucket + 1];
    if (end - begin > 1) std::sort(begin, end, is_before);
    for (auto at = begin; at != end; ++at) {
      const bool is_again = kept > first_[bucket] && entries_[kept - 1].hash == at->hash &&
                            string_of(entries_[kept - 1]) == string_of(*at);
      if (!is_again) {
        entries_[kept++] = *at;
      } else if (!first_duplicate_ || at->number < *first_duplicate_) {
        first_duplicate_ = at->number;
      }
    }
  }
  first_.back() = kept;
  entries_.resize(kept);
}

std::optional<std::int32_t> StringIndex::find(const StringTable& table,
                                              std::string_view string) const {
  const std::uint32_t hash = hash_of(string);
  const std::size_t bucket = bucket_of(hash);
  const Entry* const begin = entries_.data() + first_[bucket];
  const Entry* const end = entries_.data() + first_[bucket + 1];
  const Entry* at = std::lower_bound(begin, end, hash,
                                     [](const Entry& e, std::uint32_t h) { return e.hash < h; });
  if (at == end || at->hash != hash) return std::nullopt;
  if (at + 1 != end && (at + 1)->hash == hash) {
    at = std::lower_bound(at, end, string, [&](const Entry& e, std::string_view s) {
      return e.hash == hash && table[static_cast<std::size_t>(e.number)] < s;
    });
    if (at == end || at->hash != hash) return std::nullopt;
  }
  if (table[static_cast<std::size_t>(at->number)] != string) return std::nullopt;
  return at->number;
}

}  // namespace tern::text
