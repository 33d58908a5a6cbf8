#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <system_error>

#include "backend/cpu/cpu_plan.h"
#include "backend/cpu/device.h"
#include "backend/cpu/resident.h"
#include "base/cpu_topology.h"

namespace tern::cpu {

Result<std::shared_ptr<const backend::Plan>> CpuBackend::plan(
    const program::Program& program, const backend::DeviceProfile& profile,
    const backend::PlanOptions& options) const {
  return make_cpu_plan(program, profile, options);
}

backend::ResidentEstimate CpuBackend::estimate(const program::WeightSet& weights,
                                               const backend::DeviceProfile& profile) const {
  backend::ResidentEstimate estimate;
  for (const program::WeightDecl& d : weights.weights) {
    LayoutEstimate layout = estimate_layout(d, packed_tiling(profile.cpu));
    // Headers do not tell whether code 3 occurs: room for the larger layout, never too little.
    if (may_use_code3(d))
      layout.bytes =
          std::max(layout.bytes, estimate_layout(d, packed_tiling(profile.cpu), true).bytes);
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
  return {profile};
}

Result<std::unique_ptr<backend::Device>> CpuBackend::open(
    const backend::DeviceProfile& profile) const {
  if (!cpu_features().contains(profile.cpu))
    return fail(ErrorCode::kUnsupported, "the processor lacks {}",
                to_string(profile.cpu.without(cpu_features())));
  try {
    return std::unique_ptr<backend::Device>(std::make_unique<CpuDevice>(profile));
  } catch (const std::system_error& e) {
    return fail(ErrorCode::kOutOfMemory, "the system gives no more threads: {}", e.what());
  }
}

}  // namespace tern::cpu
