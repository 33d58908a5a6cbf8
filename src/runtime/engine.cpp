// The public Engine: a backend, a device, and what they can say about themselves.
#include "tern/engine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "backend/profile_file.h"
#include "backend/registry.h"
#include "base/control_groups.h"
#include "base/error.h"
#include "runtime/guarded.h"
#include "runtime/model_impl.h"
#include "runtime/tuning.h"

namespace tern {
namespace {

// What the kernels of an instruction set use together.
constexpr CpuFeatures kAvx2Set{CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c};
constexpr CpuFeatures kAvx512Set =
    kAvx2Set.with({CpuFeature::kAvx512f, CpuFeature::kAvx512bw, CpuFeature::kAvx512dq,
                   CpuFeature::kAvx512vl, CpuFeature::kAvx512vnni});

// The features that a name for people stands for.
Result<CpuFeatures> limit_features(const std::string& name, CpuFeatures have) {
  if (name.empty()) return have;
  if (name == "portable") return CpuFeatures{};
  if (name != "avx2" && name != "avx512")
    return fail(ErrorCode::kUsage,
                "instruction set '{}': there is no such set; known are avx512, avx2, portable",
                name);
  const CpuFeatures needed = name == "avx2" ? kAvx2Set : kAvx512Set;
  if (!have.contains(needed))
    return fail(ErrorCode::kUnsupported, "instruction set '{}': the processor lacks {}", name,
                to_string(needed.without(have)));
  return name == "avx2" ? kAvx2Set : have;
}

Error about_device(const std::string& name, const Error& error) {
  return fail(error.code(), "--device {}: {}", name, error.message());
}

// What the process may still take of its address space (ulimit -v); nothing where it is not
// limited.
std::optional<std::uint64_t> free_address_space() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const std::string statm = read_system_file("/proc/self/statm").value_or("0");
  const std::uint64_t pages = parse_decimal(statm.substr(0, statm.find(' '))).value_or(0);
  const std::uint64_t used = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used);
}

// The device that is here and the options mean.
Result<void> choose_device(const EngineOptions& options, Engine::Impl& impl) {
  Result<std::unique_ptr<backend::Backend>> made = backend::make_backend(options.device);
  if (!made.ok()) return about_device(options.device, made.error());
  impl.backend = std::move(*made);
  const std::vector<backend::DeviceProfile> devices = impl.backend->devices();
  if (devices.empty())
    return fail(ErrorCode::kDevice, "--device {}: there is none here", options.device);
  impl.profile = devices.front();
  const std::optional<std::uint64_t> space = free_address_space();
  std::uint64_t& memory = impl.profile.memory_bytes;  // 0: not known
  if (space && impl.profile.kind == backend::DeviceKind::kCpu)
    memory = std::max<std::uint64_t>(1, memory == 0 ? *space : std::min(memory, *space));
  return {};
}

// A device that need not be here.
Result<void> choose_profile(const EngineOptions& options, Engine::Impl& impl) {
  const Result<backend::DeviceProfile> found = backend::find_profile(options.profile);
  if (!found.ok())
    return fail(found.error().code(), "--profile {}: {}", options.profile, found.error().message());
  Result<std::unique_ptr<backend::Backend>> made =
      backend::make_backend(backend::to_string(found->kind));
  if (!made.ok())
    return fail(ErrorCode::kDevice,
                "--profile {}: it is a device of kind '{}', and this build cannot plan for one: {}",
                options.profile, backend::to_string(found->kind), made.error().message());
  impl.backend = std::move(*made);
  impl.profile = *found;
  return {};
}

}  // namespace

Result<Engine> Engine::create(const EngineOptions& options) {
  return runtime::guarded("engine", "to start it", [&]() -> Result<Engine> {
    auto impl = std::make_shared<Impl>();
    impl->options = options;
    const bool is_here = options.profile.empty();
    TERN_TRY(is_here ? choose_device(options, *impl) : choose_profile(options, *impl));
    constexpr int kMaxThreads = 1024;
    if (options.threads < 0 || options.threads > kMaxThreads)
      return fail(ErrorCode::kUsage, "--threads {}: expected 1 to {}", options.threads,
                  kMaxThreads);
    if (options.threads > 0) impl->profile.cores = options.threads;
    const Result<CpuFeatures> features = limit_features(options.instruction_set, impl->profile.cpu);
    TERN_TRY(features);
    // A library runs what instructions it likes.
    if (*features != impl->profile.cpu) impl->profile.vendor.clear();
    impl->profile.cpu = *features;
    impl->processor = impl->profile.maker_name;
    impl->warnings = impl->backend->warnings(impl->profile);
    if (!is_here) return Engine(std::move(impl));
    impl->profile.measured = runtime::load_tuning(impl->profile, impl->warnings);
    Result<std::unique_ptr<backend::Device>> device = impl->backend->open(impl->profile);
    if (!device.ok() && device.error().code() == ErrorCode::kOutOfMemory)
      return fail(ErrorCode::kOutOfMemory, "--threads {}: {}", impl->profile.cores,
                  device.error().message());
    if (!device.ok()) return about_device(options.device, device.error());
    impl->device = std::move(*device);
    return Engine(std::move(impl));
  });
}

std::string Engine::device_text() const {
  const backend::DeviceProfile& p = impl_->profile;
  if (p.kind != backend::DeviceKind::kCpu)
    return fmt::format("{}: {} ({}), {} cores", p.name, p.maker_name, p.architecture, p.cores);
  const std::string features = to_string(impl_->profile.cpu);
  return fmt::format("{}: {}, {} thread{}", impl_->profile.name,
                     features.empty() ? "portable" : features, impl_->profile.cores,
                     impl_->profile.cores == 1 ? "" : "s");
}
std::string Engine::processor_name() const { return impl_->processor; }
int Engine::threads() const { return impl_->profile.cores; }
std::vector<std::string> Engine::warnings() const { return impl_->warnings; }
double Engine::measure_read_gbps() const {
  return impl_->device ? impl_->device->measure_read_gbps() : 0;
}
std::uint64_t Engine::last_cache_bytes() const {
  return impl_->device ? impl_->device->last_cache_bytes() : 0;
}

Result<double> Engine::estimate_read_gbps(const CancelToken& cancel) const {
  return runtime::guarded("bandwidth", "to measure it", [&]() -> Result<double> {
    TERN_TRY(runtime::check_device(*impl_));
    constexpr std::uint64_t kLeastFree = std::uint64_t{1} << 30U;
    const std::uint64_t free = impl_->profile.memory_bytes;
    if (free != 0 && free < kLeastFree)
      return fail(ErrorCode::kOutOfMemory, "not measured: {} MiB of memory are free, {} are wanted",
                  free >> 20U, kLeastFree >> 20U);
    const double gbps = impl_->device->estimate_read_gbps(cancel);
    if (gbps > 0) return gbps;
    return fail(ErrorCode::kDevice, "not measured: the device cannot say, or has no memory left");
  });
}

Result<void> runtime::check_device(const Engine::Impl& engine) {
  if (engine.device) return {};
  return fail(ErrorCode::kDevice,
              "--profile {}: the device is only planned for; what loads or measures needs one that "
              "is here",
              engine.options.profile);
}

}  // namespace tern
