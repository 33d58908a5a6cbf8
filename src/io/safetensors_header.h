// The JSON header of a safetensors file, held to its few fields while it is being parsed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/safetensors.h"

namespace tern::io {

// A tensor as the header declares it: field types and dimension counts are checked, sizes and
// ranges are not.
struct SafetensorsEntry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape;
  std::optional<std::vector<std::uint64_t>> data_offsets;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of the header
  std::map<std::string, std::string, std::less<>> metadata;
};

// `text` starts at byte 8 of the file: messages give offsets in the file.
[[nodiscard]] Result<SafetensorsHeader> parse_safetensors_header(std::string_view text);

}  // namespace tern::io
