// The public Engine: a backend, a device, and what they can say about themselves.
#include "tern/engine.h"

#include <algorithm>
#include <fstream>

#include "backend/registry.h"
#include "base/error.h"
#include "runtime/model_impl.h"

namespace tern {
namespace {

constexpr CpuFeatures kAvx2Set{CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c};

// The features that a name for people stands for.
Result<CpuFeatures> limit_features(const std::string& name, CpuFeatures have) {
  if (name.empty()) return have;
  if (name == "portable") return CpuFeatures{};
  if (name == "avx2") {
    if (have.contains(kAvx2Set)) return kAvx2Set;
    return fail(ErrorCode::kUnsupported, "the processor lacks {}",
                to_string(kAvx2Set.without(have)));
  }
  if (name == "avx512") {
    constexpr CpuFeatures kNeeded{CpuFeature::kAvx512f, CpuFeature::kAvx512bw};
    if (have.contains(kNeeded)) return have;
    return fail(ErrorCode::kUnsupported, "the processor lacks {}",
                to_string(kNeeded.without(have)));
  }
  return fail(ErrorCode::kUsage,
              "there is no instruction set '{}'; known are avx512, avx2, portable", name);
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
  try {
    auto impl = std::make_shared<Impl>();
    impl->options = options;
    Result<std::unique_ptr<backend::Backend>> made = backend::make_backend(options.device);
    TERN_TRY(made);
    impl->backend = std::move(*made);
    const std::vector<backend::DeviceProfile> devices = impl->backend->devices();
    if (devices.empty())
      return fail(ErrorCode::kDevice, "there is no {} device here", options.device);
    impl->profile = devices.front();
    constexpr int kMaxThreads = 1024;
    if (options.threads < 0 || options.threads > kMaxThreads)
      return fail(ErrorCode::kUsage, "{} threads were asked for, expected 1 to {}", options.threads,
                  kMaxThreads);
    if (options.threads > 0) impl->profile.cores = options.threads;
    const Result<CpuFeatures> features = limit_features(options.instruction_set, impl->profile.cpu);
    TERN_TRY(features);
    impl->profile.cpu = *features;
    if (impl->profile.architecture == "x86-64" && !impl->profile.cpu.contains(kAvx2Set))
      impl->warnings.push_back(
          "this processor (or --isa) offers no AVX2: portable kernels run, "
          "many times slower");
    Result<std::unique_ptr<backend::Device>> device = impl->backend->open(impl->profile);
    TERN_TRY(device);
    impl->device = std::move(*device);
    impl->processor = read_processor_name();
    return Engine(std::move(impl));
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, "no memory is left to start the engine");
  }
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
