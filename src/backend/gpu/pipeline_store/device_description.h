// The device as the store sees it: what goes into keys and what limits a launch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tern::gpu {

struct DeviceDescription {
  std::string backend;  // "cuda", "metal"
  std::string name;     // "NVIDIA H200"
  std::string target;   // what compilers are asked for, in full: "sm_90a"
  // Targets whose embedded code this device runs, best first ("sm_90a", "sm_90").
  std::vector<std::string> accepts;
  std::string driver;                 // version and build; on macOS the OS build
  std::string runtime;                // CUDA runtime version, or Metal's language runtime
  std::uint32_t most_threads = 1024;  // of a group
  std::uint64_t most_shared = 48 * 1024;
  std::uint32_t simd_width = 32;
};

}  // namespace tern::gpu
