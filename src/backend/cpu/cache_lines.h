// Sizes in whole cache lines: everything that the CPU backend places in memory starts at one.
#pragma once

#include <cstdint>

namespace tern::cpu {

inline constexpr std::uint64_t kCacheLine = 64;

[[nodiscard]] constexpr std::uint64_t whole_lines(std::uint64_t bytes) {
  return (bytes + kCacheLine - 1) & ~(kCacheLine - 1);
}

}  // namespace tern::cpu
