// The only place that knows which backends exist. An absent one is a stub file chosen by CMake.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace tern::backend {

// All backends of this build, best first.
[[nodiscard]] std::vector<std::unique_ptr<Backend>> make_backends();

// The backend of this name ("cpu"), or kDevice with the names that exist.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(std::string_view name);

}  // namespace tern::backend
