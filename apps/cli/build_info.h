// Which build this is: filled in by CMake at build time.
#pragma once

#include <cstdint>
#include <string_view>

namespace tern::cli {

struct BuildInfo {
  std::string_view version;
  std::string_view commit;  // "8665cfe", "8665cfe-dirty", or "unknown" outside of a repository
  std::int64_t number = 0;  // commits up to this one; 0 when unknown
  std::string_view compiler;
  std::string_view build_type;
};
[[nodiscard]] BuildInfo build_info();

}  // namespace tern::cli
