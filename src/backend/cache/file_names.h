// The names of the cache's files: what is Tern's is known by its name, all else is left alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tern::cache {

inline constexpr std::string_view kEntrySuffix = ".tkc";
inline constexpr std::string_view kLockSuffix = ".lock";
inline constexpr std::string_view kTemporarySuffix = ".tmp";
inline constexpr std::string_view kScratchPrefix = "scratch-";
inline constexpr std::string_view kOutsideScratchPrefix = "tern-scratch-";
inline constexpr std::size_t kStemDigits = 40;
inline constexpr std::size_t kRandomDigits = 16;

inline bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "<40 hex digits><suffix>"
inline bool has_stem_and(std::string_view name, std::string_view suffix) {
  return name.size() == kStemDigits + suffix.size() && name.ends_with(suffix) &&
         is_hex(name.substr(0, kStemDigits));
}

// "<40 hex digits>.<process id>-<16 hex digits>.tmp"
inline std::string temporary_name(std::string_view stem, std::int64_t process,
                                  std::uint64_t random) {
  return fmt::format("{}.{}-{:016x}{}", stem, process, random, kTemporarySuffix);
}
inline bool is_temporary_name(std::string_view name) {
  if (name.size() < kStemDigits + 1 || !is_hex(name.substr(0, kStemDigits)) ||
      name[kStemDigits] != '.' || !name.ends_with(kTemporarySuffix)) {
    return false;
  }
  name.remove_prefix(kStemDigits + 1);
  name.remove_suffix(kTemporarySuffix.size());
  const std::size_t dash = name.find('-');
  return dash != std::string_view::npos && dash > 0 &&
         name.find_first_not_of("0123456789") == dash && name.size() == dash + 1 + kRandomDigits &&
         is_hex(name.substr(dash + 1));
}

inline bool is_scratch_name(std::string_view name, std::string_view prefix) {
  return name.size() == prefix.size() + kRandomDigits && name.starts_with(prefix) &&
         is_hex(name.substr(prefix.size()));
}

}  // namespace tern::cache
