#include "backend/metal/metal_backend.h"

#include <algorithm>

#include "backend/metal/plan/metal_plan.h"
#include "base/error.h"

namespace tern::metal {

Result<std::shared_ptr<const backend::Plan>> MetalBackend::plan(
    const program::Program& program, const backend::DeviceProfile& profile,
    const backend::PlanOptions& options) const {
  return make_metal_plan(program, profile, options);
}

program::Bucket MetalBackend::bucket(const program::Bucket& step,
                                     const program::Bucket& limits) const {
  return {std::min(program::rows_bucket(step.rows), limits.rows),
          std::min(program::context_bucket(step.context), limits.context)};
}

backend::ResidentEstimate MetalBackend::estimate(const program::WeightSet& weights,
                                                 const backend::DeviceProfile&) const {
  backend::ResidentEstimate estimate;
  for (const program::WeightDecl& d : weights.weights) {
    LayoutEstimate layout = estimate_layout(d);
    estimate.bytes += layout.bytes;
    estimate.layouts.push_back(layout.name.empty() ? "none" : std::move(layout.name));
  }
  return estimate;
}

std::vector<std::string> MetalBackend::warnings(const backend::DeviceProfile&) const {
  return {"the Metal backend has not yet been run on Apple hardware; please report what you see"};
}

Result<DeviceInfo> MetalBackend::device_info() const { return find_device(options_); }

std::vector<backend::DeviceProfile> MetalBackend::devices() const {
  const Result<DeviceInfo> info = device_info();
  if (!info.ok()) return {};
  return {info->profile};
}

Result<std::unique_ptr<backend::Device>> MetalBackend::open(
    const backend::DeviceProfile& profile) const {
  TERN_ASSIGN(const DeviceInfo info, device_info());
  if (profile.name != info.profile.name)
    return fail(ErrorCode::kDevice, "[metal] there is no device {}; this machine has {}",
                profile.name, info.profile.name);
  if (profile.architecture != info.profile.architecture)
    return fail(ErrorCode::kDevice, "[metal] {} is {}, the profile says {}", info.profile.name,
                info.profile.architecture, profile.architecture);
  return open_device(profile, options_);
}

}  // namespace tern::metal
