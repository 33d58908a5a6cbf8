// Where the cache lies: from strings of the environment to one absolute base folder.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace tern::cache {

// What was found in the environment and in the user database when the engine was created.
struct LocationStrings {
  std::optional<std::string> tern_cache_dir;  // TERN_CACHE_DIR
  std::optional<std::string> xdg_cache_home;  // XDG_CACHE_HOME
  std::optional<std::string> home;            // HOME
  std::optional<std::string> user_home;       // the user database's answer
};
[[nodiscard]] LocationStrings read_location_strings();

struct Base {
  std::string path;           // absolute
  bool is_explicit = false;   // TERN_CACHE_DIR: unusable is an error, not a change of place
  std::string owner_of_home;  // the home it was derived from; empty: from none
};

// The base folder, or none: then there is no disk tier. Errors: kUsage for a TERN_CACHE_DIR that is
// empty or not absolute.
[[nodiscard]] Result<std::optional<Base>> choose_base(const LocationStrings& strings);

}  // namespace tern::cache
