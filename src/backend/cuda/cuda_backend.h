// CUDA as a backend: NVIDIA GPUs through the system's driver, where there is one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/device/cuda_device.h"

namespace tern::cuda {

// What is known of a device that is there.
struct DeviceInfo {
  backend::DeviceProfile profile;  // name "cuda0"
  std::string product;             // "NVIDIA H200"
  std::string driver;              // "13.0": the newest CUDA that the driver supports
  std::uint64_t l2_bytes = 0;
  std::uint64_t shared_bytes = 0;  // of a block, at most
};

class CudaBackend : public backend::Backend {
 public:
  // The system's driver, loaded when something is first asked of it; a missing one costs nothing.
  // Devices find their kernels through the pipeline store, as the environment says.
  CudaBackend();
  // A driver of the caller's choice (tests).
  explicit CudaBackend(std::shared_ptr<const DriverApi> api, const DeviceOptions& options = {});
  ~CudaBackend() override;

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] Result<std::shared_ptr<const backend::Plan>> plan(
      const program::Program& program, const backend::DeviceProfile& profile,
      const backend::PlanOptions& options) const override;
  [[nodiscard]] program::Bucket bucket(const program::Bucket& step,
                                       const program::Bucket& limits) const override;
  [[nodiscard]] backend::ResidentEstimate estimate(
      const program::WeightSet& weights, const backend::DeviceProfile& profile) const override;
  [[nodiscard]] std::vector<std::string> warnings(
      const backend::DeviceProfile& profile) const override;
  // Empty without a driver; device_infos says why.
  [[nodiscard]] std::vector<backend::DeviceProfile> devices() const override;
  [[nodiscard]] Result<std::unique_ptr<backend::Device>> open(
      const backend::DeviceProfile& profile) const override;

  // Errors: kDevice with the sentence for a user: no driver, too old a driver, no device.
  [[nodiscard]] Result<std::vector<DeviceInfo>> device_infos() const;

 private:
  [[nodiscard]] Result<std::shared_ptr<const DriverApi>> driver() const;

  struct Driver;  // loaded once, on first use, from any thread
  std::unique_ptr<Driver> driver_;
  DeviceOptions options_;
  bool reads_environment_ = false;  // for the store of a device that is opened
};

}  // namespace tern::cuda
