// The texts of the profiles that ship; the table is written by the build from *.profile.
#pragma once

#include <span>
#include <string_view>

namespace tern::gpu {

struct ShippedProfile {
  std::string_view name;
  std::string_view text;
};
extern const std::span<const ShippedProfile> kShippedProfiles;

}  // namespace tern::gpu
