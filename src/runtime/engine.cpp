// The public Engine: a backend, a device, and what they can say about themselves.
#include "tern/engine.h"

#include <algorithm>
#include <fstream>

#include "backend/registry.h"
#include "base/error.h"
#include "runtime/guarded.h"
#include "runtime/model_impl.h"

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

std::string read_processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

Result<Engine> Engine::create(const EngineOptions& options) {
  return runtime::guarded("engine", "to start it", [&]() -> Result<Engine> {
    auto impl = std::make_shared<Impl>();
    impl->options = options;
    Result<std::unique_ptr<backend::Backend>> made = backend::make_backend(options.device);
    if (!made.ok()) return about_device(options.device, made.error());
    impl->backend = std::move(*made);
    const std::vector<backend::DeviceProfile> devices = impl->backend->devices();
    if (devices.empty())
      return fail(ErrorCode::kDevice, "--device {}: there is none here", options.device);
    impl->profile = devices.front();
    constexpr int kMaxThreads = 1024;
    if (options.threads < 0 || options.threads > kMaxThreads)
      return fail(ErrorCode::kUsage, "--threads {}: expected 1 to {}", options.threads,
                  kMaxThreads);
    if (options.threads > 0) impl->profile.cores = options.threads;
    const Result<CpuFeatures> features = limit_features(options.instruction_set, impl->profile.cpu);
    TERN_TRY(features);
    impl->profile.cpu = *features;
    impl->warnings = impl->backend->warnings(impl->profile);
    Result<std::unique_ptr<backend::Device>> device = impl->backend->open(impl->profile);
    if (!device.ok() && device.error().code() == ErrorCode::kOutOfMemory)
      return fail(ErrorCode::kOutOfMemory, "--threads {}: {}", impl->profile.cores,
                  device.error().message());
    if (!device.ok()) return about_device(options.device, device.error());
    impl->device = std::move(*device);
    impl->processor = read_processor_name();
    return Engine(std::move(impl));
  });
}

std::string Engine::device_text() const {
  const std::string features = to_string(impl_->profile.cpu);
  return fmt::format("{}: {}, {} thread{}", impl_->profile.name,
                     features.empty() ? "portable" : features, impl_->profile.cores,
                     impl_->profile.cores == 1 ? "" : "s");
}
std::string Engine::processor_name() const { return impl_->processor; }
int Engine::threads() const { return impl_->profile.cores; }
std::vector<std::string> Engine::warnings() const { return impl_->warnings; }
double Engine::measure_read_gbps() const { return impl_->device->measure_read_gbps(); }

}  // namespace tern
