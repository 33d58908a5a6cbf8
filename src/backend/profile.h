// What a planner must know about a device. A profile may come from a device, from a file, or be
// made up by a test: a plan for a machine that nobody has here is an ordinary plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "backend/choice/cost_model.h"
#include "backend/choice/measured_table.h"
#include "base/cpu_features.h"

namespace tern::backend {

enum class DeviceKind : std::uint8_t { kCpu, kCuda, kMetal };

struct DeviceProfile {
  std::string name = "cpu";
  DeviceKind kind = DeviceKind::kCpu;
  std::string architecture;              // "x86-64", "sm_90", "apple9"
  std::uint64_t memory_bytes = 0;        // what a process may take; 0: unknown
  std::uint64_t total_memory_bytes = 0;  // of the machine or the card; 0: unknown
  int cores = 1;                         // CPU: threads of the pool; GPU: multiprocessors
  CpuFeatures cpu;                       // CPU only
  // Stated or measured; none: what the backend assumes of such a device. A measured table's own
  // rates go before them.
  std::optional<DeviceRates> rates;
  std::string maker_name;  // "Intel(R) Xeon(R) Processor", "NVIDIA H200"
  std::string driver;      // its version, and the build of the operating system
  // What was measured on it; null: nothing.
  std::shared_ptr<const MeasuredTable> measured;
  std::string vendor;  // library of matrix products: "OpenBLAS 0.3.21"; empty: there is none
};

// What a measured table of this device is kept under.
[[nodiscard]] TableKey table_key(const DeviceProfile& profile);

}  // namespace tern::backend
