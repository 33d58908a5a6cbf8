// A real device for tests and benchmarks: memory from vectors, launches, results, guards.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cuda/core/modules.h"
#include "backend/cuda/kernels/kernels.h"

namespace tern::gpu_tests {

// The first device of this machine, or why there is none.
struct GpuDevice {
  std::shared_ptr<const cuda::DriverApi> api;
  std::shared_ptr<cuda::Context> context;
  std::shared_ptr<cuda::Stream> stream;
  std::shared_ptr<cuda::Modules> modules;
  std::string name;
  std::string architecture;
  int cores = 0;

  static Result<GpuDevice> open() {
    TERN_ASSIGN(cuda::DriverApi api, cuda::load_driver_api());
    GpuDevice d;
    d.api = std::make_shared<const cuda::DriverApi>(api);
    TERN_ASSIGN(d.context, cuda::Context::open(d.api, 0));
    TERN_TRY(d.context->make_current());
    TERN_ASSIGN(cuda::Stream stream, cuda::Stream::make(d.context));
    d.stream = std::make_shared<cuda::Stream>(std::move(stream));
    char name[128] = {};
    TERN_TRY(d.context->check(api.device_name(name, sizeof name - 1, 0), "cuDeviceGetName"));
    d.name = name;
    TERN_ASSIGN(d.cores, d.context->attribute(cuda::kMultiprocessors));
    TERN_ASSIGN(const int major, d.context->attribute(cuda::kCapabilityMajor));
    TERN_ASSIGN(const int minor, d.context->attribute(cuda::kCapabilityMinor));
    d.architecture = "sm_" + std::to_string(major * 10 + minor);
    d.modules = std::make_shared<cuda::Modules>(d.context, d.architecture);
    return d;
  }

  void run(const cuda::Launch& launch, const cuda::Bases& bases) const {
    cuda::launch(*stream, modules->function(launch.kernel).value(), launch, bases).value();
    stream->synchronize().value();
  }
};

// An arena in which every byte starts as 0xA5, so that what was not written shows.
class Arena {
 public:
  Arena(const GpuDevice& device, std::uint64_t bytes)
      : device_(device), memory_(device.context->allocate(bytes, "a test's arena").value()) {
    device_.stream->fill(memory_->address(), 0xA5, bytes).value();
    device_.stream->synchronize().value();
  }
  [[nodiscard]] cuda::Address address() const { return memory_->address(); }

  template <class T>
  void put(std::uint64_t offset, const std::vector<T>& values) const {
    device_.stream->copy_to_device(address() + offset, values.data(), values.size() * sizeof(T))
        .value();
    device_.stream->synchronize().value();
  }
  template <class T>
  [[nodiscard]] std::vector<T> get(std::uint64_t offset, std::size_t count) const {
    std::vector<T> values(count);
    device_.stream->copy_to_host(values.data(), address() + offset, count * sizeof(T)).value();
    device_.stream->synchronize().value();
    return values;
  }

 private:
  const GpuDevice& device_;
  std::shared_ptr<const cuda::DeviceMemory> memory_;
};

inline constexpr std::uint32_t kGuardBits = 0xA5A5A5A5U;
[[nodiscard]] inline bool is_guard(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  return bits == kGuardBits;
}

// Rows of random blocks of the format q1_g128, as they lie in a file; scales around 2^-6 of either
// sign.
[[nodiscard]] inline std::vector<std::byte> random_q1(std::int64_t rows, std::int64_t inputs,
                                                      std::mt19937& random) {
  std::vector<std::byte> blocks(static_cast<std::size_t>(rows * inputs / 128 * 18));
  for (std::size_t at = 0; at < blocks.size(); at += 18) {
    const auto scale = static_cast<std::uint16_t>((random() & 0x83FFU) | 0x2000U);
    std::memcpy(&blocks[at], &scale, 2);
    for (std::size_t i = 0; i < 16; i += 4) {
      const auto bits = static_cast<std::uint32_t>(random());
      std::memcpy(&blocks[at + 2 + i], &bits, 4);
    }
  }
  return blocks;
}

}  // namespace tern::gpu_tests
