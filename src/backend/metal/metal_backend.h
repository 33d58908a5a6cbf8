// Metal as a backend: the Apple GPU of this machine, where there is one.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace tern::metal {

struct DeviceOptions {
  // The longest that a wait without a deadline lasts.
  std::chrono::milliseconds longest_wait{60'000};
  // The emulator that tests run on is a device. Nothing but a test sets this.
  bool allows_emulator = false;
  // Compiled kernels that are used instead of those in the program (tests).
  std::string library_path;
};

// What is known of the device that is there.
struct DeviceInfo {
  backend::DeviceProfile profile;  // name "metal0"
  std::string product;             // "Apple M4 Pro"
  bool has_unified_memory = true;
  std::uint64_t max_buffer_bytes = 0;
};

class MetalBackend : public backend::Backend {
 public:
  explicit MetalBackend(DeviceOptions options = {}) : options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return "metal"; }
  [[nodiscard]] Result<std::shared_ptr<const backend::Plan>> plan(
      const program::Program& program, const backend::DeviceProfile& profile,
      const backend::PlanOptions& options) const override;
  [[nodiscard]] program::Bucket bucket(const program::Bucket& step,
                                       const program::Bucket& limits) const override;
  [[nodiscard]] backend::ResidentEstimate estimate(
      const program::WeightSet& weights, const backend::DeviceProfile& profile) const override;
  [[nodiscard]] std::vector<std::string> warnings(
      const backend::DeviceProfile& profile) const override;
  // Empty without a device; device_info says why.
  [[nodiscard]] std::vector<backend::DeviceProfile> devices() const override;
  [[nodiscard]] Result<std::unique_ptr<backend::Device>> open(
      const backend::DeviceProfile& profile) const override;

  // Errors: kDevice with the sentence for a user: a build without Metal, no device, the emulator.
  [[nodiscard]] Result<DeviceInfo> device_info() const;

 private:
  DeviceOptions options_;
};

// ---- The part that needs Metal: device/, or absent/ where a build has none. ----

[[nodiscard]] Result<DeviceInfo> find_device(const DeviceOptions& options);
[[nodiscard]] Result<std::unique_ptr<backend::Device>> open_device(
    const backend::DeviceProfile& profile, const DeviceOptions& options);

}  // namespace tern::metal
