// Copies what the program wants to know out of the environment, once, at start.
#include "cli/environment.h"

#include <unistd.h>

namespace tern::cli {

Environment Environment::read() {
  std::map<std::string, std::string, std::less<>> values;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals);
    if (name.substr(0, 9) == "TERN_ARG_" || name.substr(0, 10) == "LLAMA_ARG_" ||
        name == "NO_COLOR" || name == "TERM") {
      values.emplace(name, line.substr(equals + 1));
    }
  }
  return Environment(std::move(values));
}

std::optional<std::string> Environment::get(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

}  // namespace tern::cli
