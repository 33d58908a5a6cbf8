// A plan bound to a device: its launches, its arena, the ring that batch blocks pass through, and
// the graph that replays it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/core/modules.h"
#include "backend/cuda/plan/cuda_plan.h"
#include "backend/cuda/plan/resident.h"

namespace tern::cuda {

// What the executables of one device share: its context, its kernels and its one stream, which is
// why its steps end in the order of submission.
struct DeviceCore {
  std::shared_ptr<Context> context;
  std::shared_ptr<Modules> modules;
  std::optional<Stream> stream;
  std::mutex mutex;  // of the stream and of `last_ticket`
  std::uint64_t last_ticket = 0;
};

struct ExecutableOptions {
  bool has_graph = true;  // false: plain launches
  // Kernels may start before their predecessor has ended, where the architecture (sm_90 on) lets
  // them wait for it themselves.
  bool is_early = true;
};

class CudaExecutable : public backend::Executable {
 public:
  // Loads every kernel that a step needs, allocates, captures. A capture that fails leaves plain
  // launches and says so in warnings().
  [[nodiscard]] static Result<std::unique_ptr<CudaExecutable>> make(
      std::shared_ptr<DeviceCore> core, std::shared_ptr<const CudaPlan> plan,
      std::shared_ptr<const CudaWeights> weights, std::shared_ptr<CudaStates> states,
      const ExecutableOptions& options);
  ~CudaExecutable() override;

  [[nodiscard]] const backend::Plan& plan() const override { return *plan_; }
  [[nodiscard]] const CudaPlan& cuda_plan() const { return *plan_; }
  [[nodiscard]] const CudaStates& states() const { return *states_; }
  // Nodes of the captured graph; 0: steps are launched one by one.
  [[nodiscard]] std::size_t graph_nodes() const { return graph_ ? graph_->nodes() : 0; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  // Appends a whole step: block in, launches, outputs out. The core's lock is held by the caller.
  [[nodiscard]] Result<void> append(const program::BatchBlock& batch);
  // Whether the last step has ended.
  [[nodiscard]] Result<bool> has_ended() const { return done_->has_passed(); }
  [[nodiscard]] Result<backend::OutputRows> output(std::size_t index) const;

  // Runs the block step by step on the calling thread and tells how long each one took.
  [[nodiscard]] Result<std::vector<double>> time_steps(const program::BatchBlock& batch,
                                                       int repeats);
  [[nodiscard]] Result<std::string> first_non_finite(const program::BatchBlock& batch);

  std::uint64_t ticket = 0;  // in flight or waited for last; 0: none
  bool is_in_flight = false;

 private:
  struct OutputBuffer {
    PinnedMemory memory;
    std::int64_t rows = 0;
  };

  CudaExecutable() = default;
  [[nodiscard]] Result<void> allocate();
  [[nodiscard]] Result<void> bind();
  void capture_graph();
  [[nodiscard]] Result<void> append_block(const program::BatchBlock& batch);
  [[nodiscard]] Result<void> append_launches(std::size_t begin, std::size_t end);
  [[nodiscard]] Result<void> append_outputs(const program::BatchBlock& batch);
  [[nodiscard]] std::int64_t rows_in(const program::BatchBlock& batch, program::RowAxis axis) const;
  [[nodiscard]] Result<bool> is_finite(program::ValueId v, std::int64_t rows);

  static constexpr std::size_t kRing = 4;

  std::shared_ptr<DeviceCore> core_;
  std::shared_ptr<const CudaPlan> plan_;
  std::shared_ptr<const CudaWeights> weights_;
  std::shared_ptr<CudaStates> states_;
  ExecutableOptions options_;
  std::shared_ptr<const DeviceMemory> arena_;
  std::shared_ptr<const DeviceMemory> block_;
  PinnedMemory ring_;
  std::vector<Event> ring_events_;
  std::size_t ring_used_ = 0;
  std::vector<OutputBuffer> outputs_;
  std::vector<Launch> launches_;
  std::vector<FunctionHandle*> functions_;
  std::vector<std::size_t> first_launch_;  // by op, and one more
  std::optional<Graph> graph_;
  std::optional<Event> done_;
  std::vector<std::string> warnings_;
};

}  // namespace tern::cuda
