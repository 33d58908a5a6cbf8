// A plan bound to a device: its pipelines, its launches, its arena and its batch block.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/metal/device/commands.h"
#include "backend/metal/device/pipelines.h"
#include "backend/metal/device/weights.h"
#include "backend/metal/plan/metal_plan.h"

namespace tern::metal {

// What the executables of one device share: its context, its kernels and its one queue, which is
// why its steps end in the order of submission.
struct DeviceCore {
  std::shared_ptr<Context> context;
  std::shared_ptr<Pipelines> pipelines;
  std::mutex mutex;  // of commits and of `last_ticket`
  std::uint64_t last_ticket = 0;
};

class MetalExecutable : public backend::Executable {
 public:
  // Makes every pipeline that a step needs, and allocates. `device_name`: for labels.
  [[nodiscard]] static Result<std::unique_ptr<MetalExecutable>> make(
      std::shared_ptr<DeviceCore> core, std::shared_ptr<const MetalPlan> plan,
      std::shared_ptr<const MetalWeights> weights, std::shared_ptr<MetalStates> states);
  ~MetalExecutable() override;  // waits for what is in flight

  [[nodiscard]] const backend::Plan& plan() const override { return *plan_; }
  [[nodiscard]] const MetalPlan& metal_plan() const { return *plan_; }
  [[nodiscard]] const MetalStates& states() const { return *states_; }
  // Of the last step that was submitted.
  [[nodiscard]] int encoders_of_step() const { return encoders_of_step_; }

  // Writes the block, records the launches and commits them as one command buffer.
  [[nodiscard]] Result<backend::Submission> submit(const program::BatchBlock& batch);
  [[nodiscard]] bool is_in_flight() const { return step_ != nullptr; }
  [[nodiscard]] std::uint64_t ticket() const { return ticket_; }
  // Nothing: the step has not ended by then. Otherwise how it ended.
  [[nodiscard]] std::optional<Result<void>> wait_until(backend::Deadline end);
  // Errors: kInternal; what the last step failed with.
  [[nodiscard]] Result<backend::OutputRows> output(std::size_t index) const;

  // Run the block op by op, a command buffer each.
  [[nodiscard]] Result<std::vector<double>> time_steps(const program::BatchBlock& batch,
                                                       int repeats);
  [[nodiscard]] Result<std::string> first_non_finite(const program::BatchBlock& batch);

 private:
  MetalExecutable() = default;
  [[nodiscard]] Result<void> bind();
  [[nodiscard]] Result<void> allocate();
  void write_block(const program::BatchBlock& batch);
  [[nodiscard]] Result<void> record(Commands& commands, std::size_t begin, std::size_t end);
  // Runs some ops to their end; seconds on the device.
  [[nodiscard]] Result<double> run_ops(std::size_t begin, std::size_t end);
  [[nodiscard]] Result<void> check_status() const;
  [[nodiscard]] bool is_finite(program::ValueId v, std::int64_t rows) const;
  [[nodiscard]] const float* floats(program::ValueId v) const;
  [[nodiscard]] std::string region_text(std::size_t op) const;

  std::shared_ptr<DeviceCore> core_;
  std::shared_ptr<const MetalPlan> plan_;
  std::shared_ptr<const MetalWeights> weights_;
  std::shared_ptr<MetalStates> states_;
  MemoryRef arena_;
  MemoryRef block_;
  std::vector<Launch> launches_;
  std::vector<id<MTLComputePipelineState>> pipelines_;  // of the core, by launch
  std::vector<std::size_t> first_launch_;               // by op, and one more
  std::vector<std::int64_t> output_rows_;               // of the last step, by output
  CompletionRef step_;                                  // in flight
  std::uint64_t ticket_ = 0;
  Result<void> last_;  // how the last step ended
  int encoders_of_step_ = 0;
};

}  // namespace tern::metal
