// The limits of Tern, as `tern version --limits` prints them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tern {

struct Limit {
  std::string_view what;
  std::uint64_t most = 0;
};

// What is above a limit is refused with a sentence that names the number; nothing is cut.
[[nodiscard]] std::span<const Limit> limit_table();

}  // namespace tern
