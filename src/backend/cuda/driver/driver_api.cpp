#include "backend/cuda/driver/driver_api.h"

#include <dlfcn.h>

namespace tern::cuda {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

bool is_sticky(Status status) {
  switch (status) {
    case 214:  // uncorrectable memory error
    case 220:  // uncorrectable link error
    case 700:  // illegal address
    case 702:  // launch ran into the time limit
    case 709:  // context destroyed
    case 710:  // device assertion
    case 714:  // hardware stack
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // address space
    case 718:  // program counter
    case 719:  // launch failed
    case 999:  // unknown
      return true;
    default:
      return false;
  }
}

Result<void> check(const DriverApi& api, Status status, const char* call) {
  if (status == kSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  if (api.error_name == nullptr || api.error_name(status, &name) != kSuccess || name == nullptr)
    name = "an unknown code";
  if (api.error_text == nullptr || api.error_text(status, &text) != kSuccess || text == nullptr)
    text = "no text";
  const ErrorCode code =
      status == kOutOfMemoryStatus ? ErrorCode::kOutOfMemory : ErrorCode::kDevice;
  return fail(code, "[cuda] {} failed with {} ({}): {}", call, name, status, text);
}

Result<void> start_driver(const DriverApi& api) {
  int version = 0;
  TERN_TRY(check(api, api.driver_version(&version), "cuDriverGetVersion"));
  if (version < kOldestDriver)
    return fail(
        ErrorCode::kDevice,
        "[cuda] the NVIDIA driver supports CUDA {}, Tern needs {} or newer: install a newer "
        "driver",
        version_text(version), version_text(kOldestDriver));
  const Status started = api.init(0);
  if (started == kNoDevice)
    return fail(ErrorCode::kDevice,
                "[cuda] the NVIDIA driver is there, but it shows no device to this process");
  return check(api, started, "cuInit");
}

Result<DriverApi> load_driver_api() {
  const char* const path = "libcuda.so.1";
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(ErrorCode::kDevice,
                "[cuda] there is no NVIDIA driver on this machine ({} cannot be loaded)", path);
  DriverApi api;
  api.path = path;
  const char* missing = nullptr;
  // The library stays loaded: it is the system's, and it does not like to be unloaded.
#define TERN_LOAD(member, symbol, parameters)                                     \
  api.member = reinterpret_cast<Status(*) parameters>(::dlsym(library, #symbol)); \
  if (api.member == nullptr && missing == nullptr) missing = #symbol;
  TERN_CUDA_DRIVER(TERN_LOAD)
#undef TERN_LOAD
  if (missing != nullptr) {
    int version = 0;
    if (api.driver_version != nullptr) (void)api.driver_version(&version);
    return fail(ErrorCode::kDevice,
                "[cuda] the NVIDIA driver supports CUDA {} and lacks {}, Tern needs {} or newer: "
                "install a newer driver",
                version_text(version), missing, version_text(kOldestDriver));
  }
  TERN_TRY(start_driver(api));
  return api;
}

}  // namespace tern::cuda
