// The parts of the CUDA driver's binary interface that Tern uses: handles, codes and structs by
// their documented values, so that the build needs no toolkit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tern::cuda {

using Status = int;             // 0 is success
using DeviceNumber = int;       // a device of the driver, not an index of ours
using Address = std::uint64_t;  // in device memory

struct ContextHandle;
struct StreamHandle;
struct EventHandle;
struct ModuleHandle;
struct FunctionHandle;
struct GraphHandle;
struct GraphExecHandle;
struct GraphNodeHandle;
struct LinkHandle;

inline constexpr Status kSuccess = 0;
inline constexpr Status kOutOfMemoryStatus = 2;
inline constexpr Status kStubLibrary = 34;
inline constexpr Status kNeedsNewerDriver = 36;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kNotFoundStatus = 500;
inline constexpr Status kNotReady = 600;

enum DeviceAttribute : int {
  kClockKilohertz = 13,
  kMultiprocessors = 16,
  kIntegrated = 18,
  kMemoryClockKilohertz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kSharedBytesPerBlock = 97,  // the most that a kernel may opt in to
};

enum FunctionAttribute : int {
  kMaxThreads = 0,
  kStaticSharedBytes = 1,
  kLocalBytes = 3,
  kRegisters = 4,
  kMaxDynamicSharedBytes = 8,
};

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventNoTiming = 2;
inline constexpr unsigned kEventTiming = 0;
inline constexpr int kCaptureThreadLocal = 1;
inline constexpr int kProgrammaticSerialization = 6;  // launch attribute
inline constexpr int kLinkInputCubin = 0;
inline constexpr int kLinkInputPtx = 1;

struct LaunchAttribute {
  int id = 0;
  int padding = 0;
  union Value {
    char bytes[64];
    int programmatic_serialization_allowed;
  } value = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  StreamHandle* stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

}  // namespace tern::cuda
