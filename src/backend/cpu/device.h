// The CPU as a device: one thread pool, and a driver thread that runs what was submitted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/executable.h"
#include "base/thread_pool.h"

namespace tern::cpu {

class CpuDevice : public backend::Device {
 public:
  // library: null where there is none.
  CpuDevice(const backend::DeviceProfile& profile, std::shared_ptr<const OpenblasLibrary> library);
  ~CpuDevice() override;

  [[nodiscard]] const backend::DeviceProfile& profile() const override { return profile_; }
  Result<std::shared_ptr<const backend::ResidentWeights>> upload(
      const program::WeightSet& weights, const ProgressFn& progress,
      const CancelToken& cancel) override;
  Result<std::shared_ptr<backend::StatePool>> make_states(
      const std::vector<program::StateDecl>& states, const backend::PoolSizes& sizes) override;
  Result<std::unique_ptr<backend::Executable>> load(
      std::shared_ptr<const backend::Plan> plan,
      std::shared_ptr<const backend::ResidentWeights> weights,
      std::shared_ptr<backend::StatePool> states) override;
  Result<backend::Submission> submit(backend::Executable& executable,
                                     const program::BatchBlock& batch,
                                     const CancelToken& cancel) override;
  Result<void> wait(backend::Executable& executable, backend::Submission submission,
                    backend::Deadline deadline) override;
  [[nodiscard]] Result<backend::OutputRows> output(const backend::Executable& executable,
                                                   backend::Submission submission,
                                                   std::size_t index) const override;
  Result<std::vector<double>> time_steps(backend::Executable& executable,
                                         const program::BatchBlock& batch, int repeats) override;
  Result<std::string> first_non_finite(backend::Executable& executable,
                                       const program::BatchBlock& batch) override;
  [[nodiscard]] double measure_read_gbps() override;
  [[nodiscard]] double estimate_read_gbps(const CancelToken& cancel) override;
  [[nodiscard]] std::uint64_t last_cache_bytes() const override;
  [[nodiscard]] Result<backend::CalibrationOutcome> calibrate(
      const backend::CalibrationRequest& request, const ProgressFn& progress,
      const CancelToken& cancel) override;

 private:
  enum class JobState : std::uint8_t { kQueued, kRunning, kDone, kCancelled };
  struct Job {
    std::uint64_t ticket = 0;
    CpuExecutable* executable = nullptr;
    CancelToken cancel;
    JobState state = JobState::kQueued;
  };

  void drive();
  void run_front(std::unique_lock<std::mutex>& lock);
  // Ends what is in flight of an executable that goes.
  void retire(CpuExecutable& executable);
  [[nodiscard]] Job* find(std::uint64_t ticket);
  Result<void> take_result(std::uint64_t ticket);
  [[nodiscard]] Result<void> check_batch(const CpuExecutable& executable,
                                         const program::BatchBlock& batch) const;

  // Behind a pointer, so that a fork()ed child can leave it alone.
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;  // a job was queued or has ended, or the device stops
    std::vector<Job> jobs;  // ascending tickets; ended ones stay until they are waited for
    std::uint64_t last_ticket = 0;
    bool is_stopping = false;
  };
  [[nodiscard]] Result<void> check_process() const;

  backend::DeviceProfile profile_;
  std::shared_ptr<const OpenblasLibrary> library_;
  const std::uint64_t number_ = backend::next_allocation_id();
  ThreadPool pool_;
  std::unique_ptr<Queue> queue_;
  std::thread driver_;
};

}  // namespace tern::cpu
