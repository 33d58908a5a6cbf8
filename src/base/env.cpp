#include "base/env.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

#if defined(__APPLE__)
#include <crt_externs.h>
#endif

namespace tern {
namespace {

char** all_variables() {
#if defined(__APPLE__)
  return *_NSGetEnviron();
#else
  return ::environ;
#endif
}

bool is_known(std::string_view name) {
  return std::any_of(kEnvironmentVariables.begin(), kEnvironmentVariables.end(),
                     [name](const EnvironmentVariable& v) {
                       if (!v.name.ends_with('*')) return v.name == name;
                       return name.starts_with(v.name.substr(0, v.name.size() - 1));
                     });
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  TERN_ASSERT(is_known(name));
  if (!is_known(name)) return std::nullopt;
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::vector<EnvironmentSetting> environment_with_prefix(std::string_view prefix) {
  std::vector<EnvironmentSetting> result;
  char** variables = all_variables();
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const std::string_view entry = *variables;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !entry.starts_with(prefix)) continue;
    result.push_back({std::string(entry.substr(0, equals)), std::string(entry.substr(equals + 1))});
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return result;
}

}  // namespace tern
