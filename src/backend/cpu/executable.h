// A plan bound to memory: the list of steps that a step of the program walks.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/cpu_plan.h"
#include "backend/cpu/resident.h"
#include "backend/cpu/steps.h"
#include "backend/cpu/vendor/cpu_vendor_gemm.h"
#include "base/aligned_buffer.h"

namespace tern::cpu {

// KV pages of every layer: page p of a layer holds its keys, then its values. Memory is zero and
// untouched until used.
class CpuStates : public backend::StatePool {
 public:
  [[nodiscard]] static Result<std::shared_ptr<backend::StatePool>> make(
      const std::vector<program::StateDecl>& states, int pages);
  [[nodiscard]] std::uint64_t bytes() const override;
  [[nodiscard]] int pages() const override { return pages_; }
  [[nodiscard]] KvView view(std::uint32_t state) const;
  [[nodiscard]] const std::vector<program::StateDecl>& decls() const { return decls_; }

 private:
  int pages_ = 0;
  std::vector<program::StateDecl> decls_;
  std::vector<AlignedBuffer> memory_;
};

// What an executable takes of its device for vendor products.
struct VendorParts {
  std::shared_ptr<const OpenblasLibrary> library;  // null: there is none
  ThreadPool& pool;
  std::uint64_t device = 0;  // its number in allocations
};

class CpuExecutable : public backend::Executable {
 public:
  [[nodiscard]] static Result<std::unique_ptr<backend::Executable>> make(
      std::shared_ptr<const CpuPlan> plan, std::shared_ptr<const CpuWeights> weights,
      std::shared_ptr<CpuStates> states, const VendorParts& vendor);

  ~CpuExecutable() override {
    if (retire_) retire_(*this);
  }
  CpuExecutable(const CpuExecutable&) = delete;
  CpuExecutable& operator=(const CpuExecutable&) = delete;
  // Called when the executable goes: the device ends what is still in flight.
  void on_retire(std::function<void(CpuExecutable&)> retire) { retire_ = std::move(retire); }

  [[nodiscard]] const backend::Plan& plan() const override { return *plan_; }
  [[nodiscard]] const CpuStates& states() const { return *states_; }

  // Takes a copy of the block; allocates nothing once it has been called with a block as large.
  void set_batch(const program::BatchBlock& batch);
  [[nodiscard]] const program::BatchBlock& batch() const { return batch_; }

  // Runs the steps over `pool`. False when `cancel` was requested before the end.
  bool run(ThreadPool& pool, const CancelToken& cancel);

  // Runs and times the steps one by one: seconds by step of the plan, the median of
  // `repeats` runs.
  [[nodiscard]] std::vector<double> time_steps(ThreadPool& pool, int repeats);
  // Runs again and says which op was the first to make a value that is not finite; empty: none.
  [[nodiscard]] std::string first_non_finite(ThreadPool& pool);

  [[nodiscard]] backend::OutputRows output(std::size_t index) const;
  [[nodiscard]] std::uint32_t kv_flags() const { return kv_flags_.load(std::memory_order_relaxed); }

 private:
  CpuExecutable() = default;
  friend class StepBinder;
  void prepare(ThreadPool& pool);
  [[nodiscard]] RunContext context(ThreadPool& pool, const CancelToken& cancel);
  Result<void> bind(const VendorParts& vendor);

  std::shared_ptr<const CpuPlan> plan_;
  std::shared_ptr<const CpuWeights> weights_;
  std::shared_ptr<CpuStates> states_;
  AlignedBuffer arena_;
  AlignedBuffer scratch_;
  std::vector<RopeRows> ropes_;
  std::unique_ptr<backend::VendorGemm> vendor_;  // null: no product of the plan is the vendor's
  std::unique_ptr<CpuEncodeContext> vendor_context_;
  std::vector<Step> steps_;
  program::BatchBlock batch_;
  std::vector<const std::uint32_t*> row_pages_;
  std::atomic<std::uint32_t> kv_flags_{0};
  std::function<void(CpuExecutable&)> retire_;
};

}  // namespace tern::cpu
