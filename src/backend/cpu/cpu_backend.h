// The CPU backend.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace tern::cpu {

class CpuBackend : public backend::Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] Result<std::shared_ptr<const backend::Plan>> plan(
      const program::Program& program, const backend::DeviceProfile& profile,
      const backend::PlanOptions& options) const override;
  [[nodiscard]] program::Bucket bucket(const program::Bucket&,
                                       const program::Bucket& limits) const override {
    return limits;
  }
  [[nodiscard]] backend::ResidentEstimate estimate(
      const program::WeightSet& weights, const backend::DeviceProfile& profile) const override;
  [[nodiscard]] std::vector<std::string> warnings(
      const backend::DeviceProfile& profile) const override;
  [[nodiscard]] std::vector<backend::DeviceProfile> devices() const override;
  [[nodiscard]] Result<std::unique_ptr<backend::Device>> open(
      const backend::DeviceProfile& profile) const override;
};

}  // namespace tern::cpu
