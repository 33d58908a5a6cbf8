// Turns the ops of a plan into steps with addresses.
#pragma once

#include <memory>
#include <vector>

#include "backend/cpu/cpu_plan.h"
#include "backend/cpu/executable.h"

namespace tern::cpu {

// The arena and the weights as the vendor bridge knows memory; null where it has no products.
struct VendorMemory {
  std::shared_ptr<const backend::HostAllocation> arena;
  std::shared_ptr<const backend::HostAllocation> weights;
};

class StepBinder {
 public:
  StepBinder(const CpuPlan& plan, const CpuWeights& weights, const CpuStates& states,
             std::byte* arena, const std::vector<RopeRows>& ropes, VendorMemory vendor);
  // One step per op, in order.
  [[nodiscard]] std::vector<Step> bind() const;

 private:
  [[nodiscard]] RowsRef rows(program::ValueId v) const;
  [[nodiscard]] RowsRef rows_or_none(program::ValueId v) const;
  [[nodiscard]] RecordsView records(program::ValueId v) const;
  [[nodiscard]] BlockActivations block(program::ValueId v) const;
  [[nodiscard]] const Resident& resident(program::ValueId v) const;
  [[nodiscard]] const float* bias(program::ValueId v) const;
  [[nodiscard]] const std::vector<ProductKernel>& kernels_of(const program::Op& op) const;
  [[nodiscard]] DenseLinearStep dense_step(const program::Op& op, const program::Linear& e) const;
  [[nodiscard]] VendorProblem vendor_problem(const DenseLinearStep& step) const;

  [[nodiscard]] Step bind_op(const program::Op& op, const program::Embed& e) const;
  [[nodiscard]] Step bind_op(const program::Op& op, const program::RmsNorm& e) const;
  [[nodiscard]] Step bind_op(const program::Op& op, const program::Quantize& e) const;
  [[nodiscard]] Step bind_op(const program::Op& op, const program::Linear& e) const;
  [[nodiscard]] Step bind_op(const program::Op& op, const program::Slice& e) const;
  [[nodiscard]] Step bind_op(const program::Op& op, const program::Rope& e) const;
  [[nodiscard]] Step bind_op(const program::Op& op, const program::KvStore& e) const;
  [[nodiscard]] Step bind_op(const program::Op& op, const program::Attention& e) const;
  [[nodiscard]] Step bind_op(const program::Op& op, const program::Add& e) const;
  [[nodiscard]] Step bind_op(const program::Op& op, const program::Swiglu& e) const;
  [[nodiscard]] Step bind_op(const program::Op& op, const program::GatherRows& e) const;

  const CpuPlan& plan_;
  const program::Program& program_;
  const CpuWeights& weights_;
  const CpuStates& states_;
  std::byte* arena_;
  const std::vector<RopeRows>& ropes_;
  VendorMemory vendor_;
  std::vector<ActivationLayout> activation_layouts_;  // by ValueId, of the packed form
};

}  // namespace tern::cpu
