// The interface of a backend: plan without hardware; upload, load, submit and wait on a device.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/choice/measured_table.h"
#include "backend/choice/problem.h"
#include "backend/plan.h"
#include "backend/profile.h"
#include "base/cancellation.h"
#include "base/progress.h"
#include "program/batch.h"
#include "program/program.h"
#include "program/weights.h"
#include "tern/error.h"

namespace tern::backend {

// Weights in a device's own layout. Uploaded once per engine, shared by all its executables;
// immutable.
class ResidentWeights {
 public:
  virtual ~ResidentWeights() = default;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

// Pools of KV pages and of recurrent slots, at their final size from the moment the engine opens.
// Which page belongs to whom is the runtime's affair: a device only follows the indices of the
// batch block.
class StatePool {
 public:
  virtual ~StatePool() = default;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  [[nodiscard]] virtual int pages() const = 0;
};

// How large pools are made: pages of kPagePositions positions for KV caches, slots for recurrent
// state (none of the families that exist has any).
struct PoolSizes {
  int pages = 0;
  int slots = 0;
};

// A plan bound to a device, its weights and its states. Captured once, replayed for ever. Goes
// before its device; what is in flight of it ends first.
class Executable {
 public:
  virtual ~Executable() = default;
  [[nodiscard]] virtual const Plan& plan() const = 0;
};

// One step in flight. Tickets of one device complete in the order of submission.
struct Submission {
  std::uint64_t ticket = 0;
};

// Rows of floats in host memory.
struct OutputRows {
  const float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t row_stride = 0;  // floats, at least width
  [[nodiscard]] std::span<const float> row(std::int64_t r) const {
    return {data + r * row_stride, static_cast<std::size_t>(width)};
  }
};

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

// What `tern calibrate` measures.
struct CalibrationRequest {
  std::vector<Problem> problems;
  const MeasuredTable* previous = nullptr;  // its rows stay, unless they are measured again
  bool is_quick = false;
  std::string date;      // for the rows: "2026-11-30"
  std::string revision;  // of the source
};

struct CalibrationOutcome {
  MeasuredTable table;
  std::vector<Problem> measured;     // in the order of the request
  std::vector<std::string> skipped;  // one sentence each about what was not measured
};

// A device that is there. Thread safety: upload, make_states and load may be called from any
// thread; submit and wait of one executable belong to one thread at a time; several executables of
// one device may be used side by side.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceProfile& profile() const = 0;

  // Lays the weights out for this device, in parallel, straight from the mapped file. Errors:
  // kOutOfMemory with need and have; kInvalidFile for a scale that is not finite (F19); kCancelled.
  virtual Result<std::shared_ptr<const ResidentWeights>> upload(const program::WeightSet& weights,
                                                                const ProgressFn& progress,
                                                                const CancelToken& cancel) = 0;

  // Pools for every state of `states`, at their final size.
  virtual Result<std::shared_ptr<StatePool>> make_states(
      const std::vector<program::StateDecl>& states, const PoolSizes& sizes) = 0;

  virtual Result<std::unique_ptr<Executable>> load(std::shared_ptr<const Plan> plan,
                                                   std::shared_ptr<const ResidentWeights> weights,
                                                   std::shared_ptr<StatePool> states) = 0;

  // Copies the block and returns at once; kCancelled for a token that is tripped already. The block
  // may be reused as soon as this returns. `cancel` is looked at between ops and row chunks on a
  // CPU, between submissions on a GPU.
  virtual Result<Submission> submit(Executable& executable, const program::BatchBlock& batch,
                                    const CancelToken& cancel) = 0;

  // Waits until the step has ended or the deadline has passed (kDeadline: the step goes on; wait
  // again). A step that was cancelled is kCancelled, one that failed carries the device's message.
  virtual Result<void> wait(Executable& executable, Submission submission, Deadline deadline) = 0;

  // Output `index` of Program::outputs of a step that was waited for, in host memory, valid until
  // the next submit of this executable. Errors: kDevice when the device was lost.
  [[nodiscard]] virtual Result<OutputRows> output(const Executable& executable,
                                                  Submission submission,
                                                  std::size_t index) const = 0;

  // Diagnostics. Both run the block's step again on the calling thread and change no committed
  // state. Seconds of every step of the plan, the median of `repeats` runs.
  virtual Result<std::vector<double>> time_steps(Executable& executable,
                                                 const program::BatchBlock& batch, int repeats) = 0;
  // The first op whose result is not finite, with its region ("attention in layer 3"); empty: none.
  virtual Result<std::string> first_non_finite(Executable& executable,
                                               const program::BatchBlock& batch) = 0;
  // Bytes per second that this device reads from its memory, in GB/s. Takes about half a second.
  [[nodiscard]] virtual double measure_read_gbps() = 0;
  // About the same, fast and in little memory, for a first look at a file; 0: not known. Throws
  // Error(kCancelled).
  [[nodiscard]] virtual double estimate_read_gbps(const CancelToken& /*cancel*/) { return 0; }
  // Of the cache that a whole decode step may stay in; 0: none, or not known.
  [[nodiscard]] virtual std::uint64_t last_cache_bytes() const { return 0; }

  // Measures every variant that may run the problems against the others, and the device's rates.
  // Takes seconds to minutes. Errors: kCancelled; kUnsupported where the device has no choices.
  [[nodiscard]] virtual Result<CalibrationOutcome> calibrate(const CalibrationRequest&,
                                                             const ProgressFn&,
                                                             const CancelToken&) {
    return Error(ErrorCode::kUnsupported, "this device has nothing to calibrate yet");
  }
};

// A kind of device. Stateless; plan() and estimate() are pure and need no hardware.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // "cpu"

  // Chooses a kernel per op (eligible, pinned, measured, predicted), places activations, counts
  // memory. Errors: kUnsupported naming op, shapes and format when no variant is eligible.
  [[nodiscard]] virtual Result<std::shared_ptr<const Plan>> plan(
      const program::Program& program, const DeviceProfile& profile,
      const PlanOptions& options) const = 0;

  // The bucket that a step of so many rows in so long a context is planned for. The CPU works on
  // the rows that are there: one bucket, the limits. A GPU rounds up (program::rows_bucket,
  // program::context_bucket).
  [[nodiscard]] virtual program::Bucket bucket(const program::Bucket& step,
                                               const program::Bucket& limits) const = 0;

  [[nodiscard]] virtual ResidentEstimate estimate(const program::WeightSet& weights,
                                                  const DeviceProfile& profile) const = 0;

  // One line each about slower paths that run on such a device; the plans made for it have them
  // too.
  [[nodiscard]] virtual std::vector<std::string> warnings(const DeviceProfile& profile) const = 0;

  // The devices of this kind that are there.
  [[nodiscard]] virtual std::vector<DeviceProfile> devices() const = 0;

  // Opens a device with the profile's number of cores.
  [[nodiscard]] virtual Result<std::unique_ptr<Device>> open(
      const DeviceProfile& profile) const = 0;
};

}  // namespace tern::backend
