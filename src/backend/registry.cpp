#include "backend/registry.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/make_backend.h"
#include "base/error.h"

namespace tern::backend {

std::vector<std::unique_ptr<Backend>> make_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  if (std::unique_ptr<Backend> cuda = cuda::make_backend()) backends.push_back(std::move(cuda));
  backends.push_back(std::make_unique<cpu::CpuBackend>());
  return backends;
}

Result<std::unique_ptr<Backend>> make_backend(std::string_view name) {
  std::string known;
  for (std::unique_ptr<Backend>& backend : make_backends()) {
    if (backend->name() == name) return std::move(backend);
    known += known.empty() ? "" : ", ";
    known += backend->name();
  }
  return fail(ErrorCode::kDevice, "there is no device '{}'; this build has the devices: {}", name,
              known);
}

}  // namespace tern::backend
