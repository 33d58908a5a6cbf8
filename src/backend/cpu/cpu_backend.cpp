#include "backend/cpu/cpu_backend.h"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "backend/cpu/cpu_plan.h"
#include "backend/cpu/device.h"
#include "backend/cpu/resident.h"
#include "base/cpu_topology.h"

namespace tern::cpu {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string system_build() {
  utsname names{};
  if (::uname(&names) != 0) return "unknown system";
  return fmt::format("{} {} {}", names.sysname, names.release, names.version);
}

// "OpenBLAS 0.3.21 SkylakeX" of the library's own words.
std::string vendor_name(const OpenblasLibrary& library) {
  const std::string text = library.describe();
  return fmt::format("{} {}", text.substr(0, text.find(' ', text.find(' ') + 1)), library.core());
}

}  // namespace

std::shared_ptr<const OpenblasLibrary> CpuBackend::library() const {
  std::call_once(once_, [this] {
    Result<std::shared_ptr<const OpenblasLibrary>> loaded = OpenblasLibrary::load();
    if (loaded.ok()) library_ = std::move(*loaded);
  });
  return library_;
}

Result<std::shared_ptr<const backend::Plan>> CpuBackend::plan(
    const program::Program& program, const backend::DeviceProfile& profile,
    const backend::PlanOptions& options) const {
  return make_cpu_plan(program, profile, options);
}

backend::ResidentEstimate CpuBackend::estimate(const program::WeightSet& weights,
                                               const backend::DeviceProfile& profile) const {
  backend::ResidentEstimate estimate;
  for (const program::WeightDecl& d : weights.weights) {
    LayoutEstimate layout = estimate_layout(d, packed_tiling(profile.cpu, weights.pins));
    // Headers do not tell whether code 3 occurs: room for the larger layout, never too little.
    if (may_use_code3(d))
      layout.bytes = std::max(
          layout.bytes, estimate_layout(d, packed_tiling(profile.cpu, weights.pins), true).bytes);
    estimate.bytes += layout.bytes;
    estimate.layouts.push_back(std::move(layout.name));
  }
  return estimate;
}

std::vector<std::string> CpuBackend::warnings(const backend::DeviceProfile& profile) const {
  return slow_paths(profile);
}

std::vector<backend::DeviceProfile> CpuBackend::devices() const {
  const CpuTopology topology = read_topology();
  backend::DeviceProfile profile;
  profile.name = "cpu";
  profile.kind = backend::DeviceKind::kCpu;
#if defined(__x86_64__)
  profile.architecture = "x86-64";
#elif defined(__aarch64__)
  profile.architecture = "aarch64";
#endif
  profile.memory_bytes = topology.available_memory_bytes.value_or(0);
  profile.cores = topology.default_threads;
  profile.cpu = cpu_features();
  profile.total_memory_bytes = topology.total_memory_bytes.value_or(0);
  profile.maker_name = processor_name();
  profile.driver = system_build();
  if (const auto library = this->library()) profile.vendor = vendor_name(*library);
  return {profile};
}

Result<std::unique_ptr<backend::Device>> CpuBackend::open(
    const backend::DeviceProfile& profile) const {
  if (!cpu_features().contains(profile.cpu))
    return fail(ErrorCode::kUnsupported, "the processor lacks {}",
                to_string(profile.cpu.without(cpu_features())));
  const std::shared_ptr<const OpenblasLibrary> library =
      profile.vendor.empty() ? nullptr : this->library();
  if (!profile.vendor.empty() && (!library || vendor_name(*library) != profile.vendor))
    return fail(ErrorCode::kUnsupported, "the profile has {}, which is not here", profile.vendor);
  try {
    return std::unique_ptr<backend::Device>(std::make_unique<CpuDevice>(profile, library));
  } catch (const std::system_error& e) {
    return fail(ErrorCode::kOutOfMemory, "the system gives no more threads: {}", e.what());
  }
}

}  // namespace tern::cpu
