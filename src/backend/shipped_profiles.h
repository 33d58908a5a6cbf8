// The profiles that the program brings along: texts of src/backend/profiles/, put into a source
// file by CMake.
#pragma once

#include <span>
#include <string_view>

namespace tern::backend {

struct ShippedProfile {
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] std::span<const ShippedProfile> shipped_profile_texts();

}  // namespace tern::backend
