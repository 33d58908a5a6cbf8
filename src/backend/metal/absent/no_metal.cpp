// Metal on a system that has none: no device, and a sentence that says so.
#include "backend/metal/metal_backend.h"
#include "base/error.h"

namespace tern::metal {
namespace {

Error absent() {
  return fail(ErrorCode::kDevice,
              "[metal] this build has no Metal, which exists on macOS only; run it with --device "
              "cpu or --device cuda");
}

}  // namespace

Result<DeviceInfo> find_device(const DeviceOptions&) { return absent(); }

Result<std::unique_ptr<backend::Device>> open_device(const backend::DeviceProfile&,
                                                     const DeviceOptions&) {
  return absent();
}

}  // namespace tern::metal
