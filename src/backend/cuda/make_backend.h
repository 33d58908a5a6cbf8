// CUDA's entry in the registry.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace tern::cuda {

// The backend, or nothing in a build without CUDA (TERN_CUDA=OFF). A machine without a driver has
// the backend and no devices.
[[nodiscard]] std::unique_ptr<backend::Backend> make_backend();

}  // namespace tern::cuda
