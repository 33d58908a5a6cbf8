// What a measured table is kept under, from a profile.
#include "backend/profile.h"

#include <bit>

#include "backend/profile_file.h"
#include "base/error.h"
#include "tern/version.h"

namespace tern::backend {

std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kCuda:
      return "cuda";
    case DeviceKind::kMetal:
      break;
  }
  return "metal";
}

namespace {

// What a machine has free changes from hour to hour; its class does not.
std::string memory_class(std::uint64_t bytes) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  if (bytes == 0) return "unknown";
  if (bytes < kGiB) return "below 1 GiB";
  return fmt::format("{} GiB", std::bit_floor(bytes / kGiB));
}

}  // namespace

TableKey table_key(const DeviceProfile& p) {
  const std::string features = to_string(p.cpu);
  return {
      .backend = std::string(to_string(p.kind)),
      .architecture = features.empty() ? p.architecture : p.architecture + " " + features,
      .device = p.maker_name,
      .cores = std::to_string(p.cores),
      .memory_class = memory_class(p.total_memory_bytes ? p.total_memory_bytes : p.memory_bytes),
      .driver = p.driver,
      .vendor = p.vendor.empty() ? "none" : p.vendor,
      .tern = TERN_VERSION_STRING,
      .op_set = std::to_string(kOpSetVersion)};
}

}  // namespace tern::backend
