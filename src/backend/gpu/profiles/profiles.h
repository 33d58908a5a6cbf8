// Profiles of devices that need not be here: a few that ship with Tern, and files of a user's.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "backend/profile.h"
#include "base/error.h"

namespace tern::gpu {

// Names of the profiles that ship, in order: "h200", "m4-pro", "rtx4090".
[[nodiscard]] std::vector<std::string_view> profile_names();

// Lines "key = value"; '#' starts a comment. Keys: name, kind (cpu, cuda, metal), architecture,
// memory_gib, read_gbps, fused_multiply_adds_per_s, cores; each at most once, name, kind and
// architecture at least. Errors: kInvalidFile with `where`, the line, what was found and what is
// known.
[[nodiscard]] Result<backend::DeviceProfile> parse_profile(std::string_view text,
                                                           std::string_view where);

// A profile that ships, or else the file of that path. Errors: kNotFound with the names that there
// are; kIo; kInvalidFile.
[[nodiscard]] Result<backend::DeviceProfile> load_profile(std::string_view name_or_path);

}  // namespace tern::gpu
