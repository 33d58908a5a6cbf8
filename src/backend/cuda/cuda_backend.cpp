#include "backend/cuda/cuda_backend.h"

#include <algorithm>
#include <mutex>

#include "backend/cuda/embed/embedded.h"
#include "backend/cuda/plan/cuda_plan.h"

namespace tern::cuda {
namespace {

// f32 multiply-adds of a multiprocessor in a clock.
// What clocks and widths allow, until a calibration measures it: two transfers a clock and pin; a
// multiply-add a lane and clock; matrix units at eight times that, which the slowest of sm_80 and
// later reach.
backend::DeviceRates assumed_rates(int memory_khz, int bus_bits, int clock_khz, int cores,
                                   int architecture);

int lanes_of(int architecture) { return architecture == 80 || architecture == 75 ? 64 : 128; }

Result<DeviceInfo> describe_device(const DriverApi& api, int ordinal, int driver_version) {
  DeviceNumber device = 0;
  TERN_TRY(check(api, api.device_get(&device, ordinal), "cuDeviceGet"));
  DeviceInfo info;
  char name[256] = {};
  TERN_TRY(check(api, api.device_name(name, static_cast<int>(sizeof name) - 1, device),
                 "cuDeviceGetName"));
  std::size_t bytes = 0;
  TERN_TRY(check(api, api.device_bytes(&bytes, device), "cuDeviceTotalMem"));
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    return api.device_attribute(&value, which, device) == kSuccess ? value : 0;
  };
  const int architecture = attribute(kCapabilityMajor) * 10 + attribute(kCapabilityMinor);
  info.product = name;
  info.driver = version_text(driver_version);
  info.l2_bytes = static_cast<std::uint64_t>(attribute(kL2Bytes));
  info.shared_bytes = static_cast<std::uint64_t>(attribute(kSharedBytesPerBlock));
  backend::DeviceProfile& p = info.profile;
  p.name = fmt::format("cuda{}", ordinal);
  p.kind = backend::DeviceKind::kCuda;
  p.architecture = fmt::format("sm_{}", architecture);
  p.memory_bytes = bytes;
  p.cores = std::max(attribute(kMultiprocessors), 1);
  p.maker_name = name;
  p.driver = info.driver;
  p.total_memory_bytes = bytes;
  p.rates = assumed_rates(attribute(kMemoryClockKilohertz), attribute(kMemoryBusBits),
                          attribute(kClockKilohertz), p.cores, architecture);
  return info;
}

backend::DeviceRates assumed_rates(int memory_khz, int bus_bits, int clock_khz, int cores,
                                   int architecture) {
  backend::DeviceRates rates;
  rates.cores = cores;
  rates.bandwidth = backend::gigabytes_per_second(2e-6 * memory_khz * bus_bits / 8);
  const double f32 = 2e-6 * clock_khz * cores * static_cast<double>(lanes_of(architecture));
  rates.peak.fill(backend::gigaflop_per_second(8 * f32));
  rates.peak[static_cast<std::size_t>(backend::Arithmetic::kF32)] =
      backend::gigaflop_per_second(f32);
  return rates;
}

}  // namespace

struct CudaBackend::Driver {
  std::mutex mutex;
  std::optional<Result<std::shared_ptr<const DriverApi>>> api;
};

CudaBackend::CudaBackend() : driver_(std::make_unique<Driver>()), reads_environment_(true) {}

CudaBackend::CudaBackend(std::shared_ptr<const DriverApi> api, const DeviceOptions& options)
    : driver_(std::make_unique<Driver>()), options_(options) {
  driver_->api.emplace(std::move(api));
}

CudaBackend::~CudaBackend() = default;

Result<std::shared_ptr<const DriverApi>> CudaBackend::driver() const {
  const std::lock_guard lock(driver_->mutex);
  if (!driver_->api) {
    Result<DriverApi> loaded = load_driver_api();
    if (loaded.ok())
      driver_->api.emplace(std::make_shared<const DriverApi>(std::move(*loaded)));
    else
      driver_->api.emplace(loaded.error());
  }
  return *driver_->api;
}

Result<std::shared_ptr<const backend::Plan>> CudaBackend::plan(
    const program::Program& program, const backend::DeviceProfile& profile,
    const backend::PlanOptions& options) const {
  return make_cuda_plan(program, profile, options);
}

program::Bucket CudaBackend::bucket(const program::Bucket& step,
                                    const program::Bucket& limits) const {
  return {std::min(program::rows_bucket(step.rows), limits.rows),
          std::min(program::context_bucket(step.context), limits.context)};
}

backend::ResidentEstimate CudaBackend::estimate(const program::WeightSet& weights,
                                                const backend::DeviceProfile&) const {
  backend::ResidentEstimate estimate;
  for (const program::WeightDecl& d : weights.weights) {
    LayoutEstimate layout = estimate_layout(d);
    estimate.bytes += layout.bytes;
    estimate.layouts.push_back(layout.name.empty() ? "none" : std::move(layout.name));
  }
  return estimate;
}

std::vector<std::string> CudaBackend::warnings(const backend::DeviceProfile& profile) const {
  const int architecture = architecture_number(profile.architecture);
  std::vector<std::string> result;
  if (architecture >= 100)
    result.push_back(
        fmt::format("{} emulates binary matrix instructions: products of packed weights are slow",
                    profile.architecture));
  if (embedded_cubins().empty())
    result.push_back("this build has no CUDA kernels compiled in (nvcc was not found)");
  return result;
}

Result<std::vector<DeviceInfo>> CudaBackend::device_infos() const {
  TERN_ASSIGN(const std::shared_ptr<const DriverApi> api, driver());
  int version = 0;
  int count = 0;
  TERN_TRY(check(*api, api->driver_version(&version), "cuDriverGetVersion"));
  TERN_TRY(check(*api, api->device_count(&count), "cuDeviceGetCount"));
  if (count == 0)
    return fail(ErrorCode::kDevice,
                "[cuda] the NVIDIA driver is there, but it shows no device to this process");
  std::vector<DeviceInfo> infos;
  for (int i = 0; i < count; ++i) {
    TERN_ASSIGN(DeviceInfo info, describe_device(*api, i, version));
    infos.push_back(std::move(info));
  }
  return infos;
}

std::vector<backend::DeviceProfile> CudaBackend::devices() const {
  std::vector<backend::DeviceProfile> profiles;
  const Result<std::vector<DeviceInfo>> infos = device_infos();
  if (infos.ok())
    for (const DeviceInfo& info : *infos) profiles.push_back(info.profile);
  return profiles;
}

Result<std::unique_ptr<backend::Device>> CudaBackend::open(
    const backend::DeviceProfile& profile) const {
  TERN_ASSIGN(const std::vector<DeviceInfo> infos, device_infos());
  TERN_ASSIGN(const std::shared_ptr<const DriverApi> api, driver());
  std::string known;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const backend::DeviceProfile& found = infos[i].profile;
    if (found.name == profile.name) {
      if (found.architecture != profile.architecture)
        return fail(ErrorCode::kDevice, "[cuda] {} is {}, the profile says {}", found.name,
                    found.architecture, profile.architecture);
      DeviceOptions options = options_;
      if (reads_environment_) {
        TERN_ASSIGN(options.store, store_settings_from_environment());
      }
      TERN_ASSIGN(std::unique_ptr<CudaDevice> device,
                  CudaDevice::open(api, static_cast<int>(i), profile, infos[i].product, options));
      return std::unique_ptr<backend::Device>(std::move(device));
    }
    known += (known.empty() ? "" : ", ") + found.name;
  }
  return fail(ErrorCode::kDevice, "[cuda] there is no device {}; this machine has {}", profile.name,
              known);
}

}  // namespace tern::cuda
