// What a planner must know about a device. A profile may come from a device, from a file, or be
// made up by a test: a plan for a machine that nobody has here is an ordinary plan.
#pragma once

#include <cstdint>
#include <string>

#include "base/cpu_features.h"

namespace tern::backend {

enum class DeviceKind : std::uint8_t { kCpu, kCuda, kMetal };

struct DeviceProfile {
  std::string name = "cpu";
  DeviceKind kind = DeviceKind::kCpu;
  std::string architecture;        // "x86-64", "sm_90", "apple9"
  std::uint64_t memory_bytes = 0;  // what a process may take; 0: unknown
  double read_gbps = 0;            // measured or stated; 0: unknown
  double fused_multiply_adds = 0;  // per second, f32; 0: unknown
  int cores = 1;                   // CPU: threads of the pool; GPU: multiprocessors
  CpuFeatures cpu;                 // CPU only
};

}  // namespace tern::backend
