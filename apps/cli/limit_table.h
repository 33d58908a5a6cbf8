// The limits of Tern, as `tern version --limits` prints them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tern::cli {

struct LimitRow {
  std::string_view what;
  std::uint64_t limit;
};
// Equal to the table of src/base/limits.h, which apps may not include; tests/cli compares the two.
[[nodiscard]] std::span<const LimitRow> limit_table();

}  // namespace tern::cli
