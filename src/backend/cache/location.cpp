#include "backend/cache/location.h"

#include <pwd.h>
#include <unistd.h>

#include <vector>

#include "base/env.h"

namespace tern::cache {
namespace {

bool is_absolute(const std::optional<std::string>& path) {
  return path && !path->empty() && path->front() == '/';
}

// What the user database says about the effective user.
std::optional<std::string> home_of_user() {
  std::vector<char> text(16384);
  struct passwd record = {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &record, text.data(), text.size(), &found) != 0 ||
      found == nullptr || found->pw_dir == nullptr) {
    return std::nullopt;
  }
  return std::string(found->pw_dir);
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

LocationStrings read_location_strings() {
  return {environment_variable("TERN_CACHE_DIR"), environment_variable("XDG_CACHE_HOME"),
          environment_variable("HOME"), home_of_user()};
}

Result<std::optional<Base>> choose_base(const LocationStrings& strings) {
  if (strings.tern_cache_dir) {
    if (!is_absolute(strings.tern_cache_dir)) {
      return fail(ErrorCode::kUsage,
                  "TERN_CACHE_DIR: '{}' is not an absolute path; give one that starts with '/', or "
                  "unset the variable",
                  *strings.tern_cache_dir);
    }
    return std::optional<Base>(Base{without_trailing_slashes(*strings.tern_cache_dir), true, {}});
  }
  if (is_absolute(strings.xdg_cache_home)) {
    return std::optional<Base>(Base{without_trailing_slashes(*strings.xdg_cache_home), false, {}});
  }
  const std::optional<std::string>& home =
      is_absolute(strings.home) ? strings.home : strings.user_home;
  if (!is_absolute(home)) return std::optional<Base>();
  const std::string folder = without_trailing_slashes(*home);
#if defined(__APPLE__)
  constexpr const char* kBelowHome = "Library/Caches";
#else
  constexpr const char* kBelowHome = ".cache";
#endif
  const std::string slash = folder == "/" ? "" : "/";
  return std::optional<Base>(Base{folder + slash + kBelowHome, false, folder});
}

}  // namespace tern::cache
