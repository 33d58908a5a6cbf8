// An Apple GPU as a device of Tern.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/metal/device/executable.h"

namespace tern::metal {

class MetalDevice : public backend::Device {
 public:
  [[nodiscard]] static Result<std::unique_ptr<MetalDevice>> open(
      const backend::DeviceProfile& profile, const DeviceOptions& options);

  [[nodiscard]] const backend::DeviceProfile& profile() const override { return profile_; }
  [[nodiscard]] const std::shared_ptr<DeviceCore>& core() const { return core_; }
  Result<std::shared_ptr<const backend::ResidentWeights>> upload(
      const program::WeightSet& weights, const ProgressFn& progress,
      const CancelToken& cancel) override;
  Result<std::shared_ptr<backend::StatePool>> make_states(
      const std::vector<program::StateDecl>& states, const backend::PoolSizes& sizes) override;
  Result<std::unique_ptr<backend::Executable>> load(
      std::shared_ptr<const backend::Plan> plan,
      std::shared_ptr<const backend::ResidentWeights> weights,
      std::shared_ptr<backend::StatePool> states) override;
  Result<backend::Submission> submit(backend::Executable& executable,
                                     const program::BatchBlock& batch,
                                     const CancelToken& cancel) override;
  Result<void> wait(backend::Executable& executable, backend::Submission submission,
                    backend::Deadline deadline) override;
  [[nodiscard]] Result<backend::OutputRows> output(const backend::Executable& executable,
                                                   backend::Submission submission,
                                                   std::size_t index) const override;
  Result<std::vector<double>> time_steps(backend::Executable& executable,
                                         const program::BatchBlock& batch, int repeats) override;
  Result<std::string> first_non_finite(backend::Executable& executable,
                                       const program::BatchBlock& batch) override;
  [[nodiscard]] double measure_read_gbps() override;

 private:
  MetalDevice(std::shared_ptr<DeviceCore> core, backend::DeviceProfile profile,
              DeviceOptions options)
      : core_(std::move(core)), profile_(std::move(profile)), options_(std::move(options)) {}

  std::shared_ptr<DeviceCore> core_;
  backend::DeviceProfile profile_;
  DeviceOptions options_;
};

}  // namespace tern::metal
