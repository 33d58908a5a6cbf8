// Overflow-checked arithmetic in unsigned 64 bits, for every size that comes out of a file.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace tern {

[[nodiscard]] constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  if (b > std::numeric_limits<std::uint64_t>::max() - a) return std::nullopt;
  return a + b;
}

[[nodiscard]] constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  if (a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a) return std::nullopt;
  return a * b;
}

// value rounded up to a multiple of alignment (a power of two).
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_align(std::uint64_t value,
                                                                   std::uint64_t alignment) {
  const auto sum = checked_add(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

// value as To, or nothing when it does not fit.
template <class To, class From>
[[nodiscard]] constexpr std::optional<To> checked_cast(From value) {
  static_assert(std::is_integral_v<To> && std::is_integral_v<From>);
  const To result = static_cast<To>(value);
  if (static_cast<From>(result) != value || (result < To{}) != (value < From{}))
    return std::nullopt;
  return result;
}

// a rounded up to a multiple of b, for sizes that are known to be small.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b * b;
}
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace tern
