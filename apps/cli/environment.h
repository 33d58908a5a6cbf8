// The environment of the process: the one place of the program that reads it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tern::cli {

class Environment {
 public:
  // The variables that the program knows: TERN_ARG_*, LLAMA_ARG_*, NO_COLOR, TERM.
  [[nodiscard]] static Environment read();
  explicit Environment(std::map<std::string, std::string, std::less<>> values)
      : values_(std::move(values)) {}

  [[nodiscard]] std::optional<std::string> get(std::string_view name) const;
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& values() const {
    return values_;
  }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace tern::cli
