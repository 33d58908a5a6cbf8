// A Metal device for tests of kernels: memory from vectors, launches, results, guards.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/metal/kernels/kernels.h"
#include "backend/metal/metal_backend.h"

namespace tern::metal_tests {

// How tests open a device: the emulator is allowed.
[[nodiscard]] metal::DeviceOptions test_options();
// The kernel's pipeline made from its source on this system instead of the prebuilt library.
// Empty: it works; otherwise the error.
[[nodiscard]] std::string compile_from_source(metal::KernelId kernel);

// Memory of the device in which every byte starts as 0xA5, so that what was not written shows.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] std::byte* data() const { return data_; }

  template <class T>
  void put(std::uint64_t offset, const std::vector<T>& values) const {
    std::memcpy(data_ + offset, values.data(), values.size() * sizeof(T));
  }
  template <class T>
  [[nodiscard]] std::vector<T> get(std::uint64_t offset, std::size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), data_ + offset, count * sizeof(T));
    return values;
  }

 protected:
  std::byte* data_ = nullptr;
};

class Rig {
 public:
  virtual ~Rig() = default;
  [[nodiscard]] static std::unique_ptr<Rig> open();
  [[nodiscard]] virtual std::unique_ptr<Memory> memory(std::uint64_t bytes) = 0;
  // One command buffer with these launches; empty, or the error.
  [[nodiscard]] virtual std::string run(const std::vector<metal::Launch>& launches,
                                        const Memory& weights, const Memory& arena,
                                        const Memory& block) = 0;
};

inline constexpr std::uint32_t kGuardBits = 0xA5A5A5A5U;
[[nodiscard]] inline bool is_guard(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  return bits == kGuardBits;
}

}  // namespace tern::metal_tests
