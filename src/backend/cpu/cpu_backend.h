// The CPU backend.
#pragma once

#include <memory>
#include <mutex>

#include "backend/backend.h"
#include "backend/cpu/vendor/openblas_library.h"

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

 private:
  // Loaded when it is first asked for and kept, so that one backend has one copy. Null: not here.
  [[nodiscard]] std::shared_ptr<const OpenblasLibrary> library() const;

  mutable std::once_flag once_;
  mutable std::shared_ptr<const OpenblasLibrary> library_;
};

}  // namespace tern::cpu
