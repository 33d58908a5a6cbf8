#include "backend/cpu/cpu_backend.h"

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
    estimate.bytes += layout.bytes;
    estimate.layouts.push_back(std::move(layout.name));
  }
  return estimate;
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
    return fail(ErrorCode::kOutOfMemory, "the system gives no more threads ({} were asked for): {}",
                profile.cores + 1, e.what());
  }
}

}  // namespace tern::cpu
