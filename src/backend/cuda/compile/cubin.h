// Reads what a cubin holds from its ELF tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace tern::cuda {

struct CubinFacts {
  std::uint32_t architecture = 0;         // 90 for sm_90 and sm_90a
  std::vector<std::string> entry_points;  // global functions, sorted
  std::vector<std::string> objects;       // named constants and variables, sorted
};

// Bounds are checked; a damaged file is kInvalidFile.
[[nodiscard]] Result<CubinFacts> read_cubin(std::span<const std::byte> bytes);

}  // namespace tern::cuda
