// Puts the path in front of a message that speaks of a file's inside.
#pragma once

#include <string>

#include "base/error.h"

namespace tern::runtime {

[[nodiscard]] inline Error with_path(const std::string& path, const Error& error) {
  return fail(error.code(), "{}: {}", path, error.message());
}

}  // namespace tern::runtime
