#include "backend/cpu/bind.h"

namespace tern::cpu {

using program::Element;
using program::ValueId;

StepBinder::StepBinder(const CpuPlan& plan, const CpuWeights& weights, const CpuStates& states,
                       std::byte* arena, const std::vector<RopeRows>& ropes, VendorMemory vendor)
    : plan_(plan),
      program_(plan.program),
      weights_(weights),
      states_(states),
      arena_(arena),
      ropes_(ropes),
      vendor_(std::move(vendor)),
      activation_layouts_(plan.program.values.size()) {
  // The layouts of records follow from the weights as they were laid out.
  std::vector<ActivationNeeds> needed(program_.values.size());
  for (const program::Op& op : program_.ops) {
    const auto* linear = std::get_if<program::Linear>(&op.kind);
    if (!linear || program_.at(linear->x).element != Element::kQuant) continue;
    if (const auto* packed = std::get_if<ResidentPacked>(&resident(linear->weight)))
      needed[linear->x] = needed[linear->x] | needs(packed->layout);
  }
  for (ValueId v = 0; v < program_.values.size(); ++v)
    if (plan_.quant_forms[v].has_packed)
      activation_layouts_[v] =
          activation_layout(program_.at(v).quant.width, plan_.tiling, needed[v]);
}

std::vector<Step> StepBinder::bind() const {
  std::vector<Step> steps;
  steps.reserve(program_.ops.size());
  for (const program::Op& op : program_.ops)
    steps.push_back(std::visit([&](const auto& e) { return bind_op(op, e); }, op.kind));
  return steps;
}

RowsRef StepBinder::rows(ValueId v) const {
  const backend::Placement& place = plan_.placements[v];
  const program::RowsType& type = program_.at(v).rows;
  return {reinterpret_cast<float*>(arena_ + place.offset), place.row_stride, type.width, type.axis};
}

RowsRef StepBinder::rows_or_none(ValueId v) const {
  return v == program::kNoValue ? RowsRef{} : rows(v);
}

RecordsView StepBinder::records(ValueId v) const {
  return activation_layouts_[v].view(arena_ + plan_.placements[v].offset);
}

BlockActivations StepBinder::block(ValueId v) const {
  return {program_.at(v).quant.width,
          arena_ + plan_.placements[v].offset + plan_.quant_forms[v].block_offset};
}

const Resident& StepBinder::resident(ValueId v) const { return weights_.at(program_.at(v).index); }

const float* StepBinder::bias(ValueId v) const {
  return v == program::kNoValue ? nullptr : std::get<ResidentVector>(resident(v)).data;
}

const std::vector<ProductKernel>& StepBinder::kernels_of(const program::Op& op) const {
  return plan_.products[static_cast<std::size_t>(&op - program_.ops.data())];
}

VendorProblem StepBinder::vendor_problem(const DenseLinearStep& step) const {
  const auto in = [](const std::shared_ptr<const backend::HostAllocation>& memory, const void* data,
                     std::int64_t stride) -> VendorOperand {
    return {memory,
            static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - memory->data()),
            static_cast<std::uint64_t>(stride)};
  };
  VendorProblem p;
  p.shape = {step.weight->format, step.weight->rows, step.weight->inputs, true};
  p.x = in(vendor_.arena, step.x.data, step.x.stride);
  p.w = in(vendor_.weights, step.weight->data, step.weight->inputs);
  p.y = in(vendor_.arena, step.y.data, step.y.stride);
  if (step.residual.data) p.residual = in(vendor_.arena, step.residual.data, step.residual.stride);
  if (step.bias) p.bias = in(vendor_.weights, step.bias, 0);
  return p;
}

DenseLinearStep StepBinder::dense_step(const program::Op& op, const program::Linear& e) const {
  DenseLinearStep step;
  step.weight = &std::get<ResidentDense>(resident(e.weight));
  step.x = rows(e.x);
  step.y = rows(op.result);
  step.bias = bias(e.bias);
  step.residual = rows_or_none(e.residual);
  bool has_vendor = false;
  for (const ProductKernel& k : kernels_of(op)) {
    step.fns.push_back({k.most_rows, k.variant.is_vendor ? nullptr : k.variant.dense->run});
    has_vendor = has_vendor || k.variant.is_vendor;
  }
  for (const DenseProductVariant& v : dense_product_variants())
    if (!step.own && plan_.profile.cpu.contains(v.needs)) step.own = v.run;
  if (has_vendor && vendor_.arena) step.vendor = vendor_problem(step);
  return step;
}

Step StepBinder::bind_op(const program::Op& op, const program::Embed& e) const {
  return EmbedStep{&resident(e.table), plan_.kernels.packed.variant->decode_row, rows(op.result)};
}

Step StepBinder::bind_op(const program::Op& op, const program::RmsNorm& e) const {
  return RmsNormStep{plan_.kernels.rms_norm.variant->run,
                     &std::get<ResidentVector>(resident(e.weight)), rows(e.x), rows(op.result),
                     e.eps};
}

Step StepBinder::bind_op(const program::Op& op, const program::Quantize& e) const {
  const QuantForms& forms = plan_.quant_forms[op.result];
  QuantizeStep step;
  step.x = rows(e.x);
  if (forms.has_packed) {
    step.packed_fn = plan_.kernels.packed.variant->quantize;
    step.records = records(op.result);
  }
  if (forms.has_block) {
    step.block_fn = plan_.kernels.block.variant->quantize;
    step.block = block(op.result);
  }
  return step;
}

Step StepBinder::bind_op(const program::Op& op, const program::Linear& e) const {
  const bool is_float = program_.at(e.x).element == Element::kF32;
  const Resident& weight = resident(e.weight);
  const RowsRef y = rows(op.result);
  const RowsRef residual = rows_or_none(e.residual);
  if (const auto* packed = std::get_if<ResidentPacked>(&weight)) {
    PackedLinearStep step;
    for (const ProductKernel& k : kernels_of(op))
      step.fns.push_back(
          {k.most_rows, is_float ? k.variant.packed->matmul_f32 : k.variant.packed->matmul});
    step.weight = packed;
    if (is_float) step.x = rows(e.x);
    if (!is_float) step.records = records(e.x);
    step.y = y;
    step.bias = bias(e.bias);
    step.residual = residual;
    return step;
  }
  if (const auto* matrix = std::get_if<BlockMatrix>(&weight)) {
    BlockLinearStep step;
    for (const ProductKernel& k : kernels_of(op))
      step.fns.push_back({k.most_rows, is_float ? k.variant.block->run_f32 : k.variant.block->run});
    step.weight = matrix;
    if (is_float) step.x = rows(e.x);
    if (!is_float) step.block = block(e.x);
    step.y = y;
    step.bias = bias(e.bias);
    step.residual = residual;
    return step;
  }
  return dense_step(op, e);
}

Step StepBinder::bind_op(const program::Op&, const program::Slice&) const { return NoStep{}; }

Step StepBinder::bind_op(const program::Op& op, const program::Rope& e) const {
  return RopeStep{plan_.kernels.rope.variant->run,
                  rows(e.x),
                  rows(op.result),
                  &ropes_[e.table],
                  static_cast<int>(e.head_dim),
                  e.pairs == program::RopePairs::kHalves ? RopeMode::kHalves : RopeMode::kAdjacent};
}

Step StepBinder::bind_op(const program::Op&, const program::KvStore& e) const {
  return KvStoreStep{plan_.kernels.kv_store.variant->run, states_.view(program_.at(e.state).index),
                     rows(e.k), rows(e.v)};
}

Step StepBinder::bind_op(const program::Op& op, const program::Attention& e) const {
  return AttentionStep{plan_.kernels.attention.variant,
                       states_.view(program_.at(e.state).index),
                       rows(e.q),
                       rows(op.result),
                       static_cast<int>(e.heads),
                       e.scale};
}

Step StepBinder::bind_op(const program::Op& op, const program::Add& e) const {
  return AddStep{plan_.kernels.elementwise.variant->add, rows(e.a), rows(e.b), rows(op.result)};
}

Step StepBinder::bind_op(const program::Op& op, const program::Swiglu& e) const {
  return SwigluStep{plan_.kernels.swiglu.variant->run, rows(e.gate), rows(e.up), rows(op.result)};
}

Step StepBinder::bind_op(const program::Op& op, const program::GatherRows& e) const {
  return GatherRowsStep{rows(e.x), rows(op.result)};
}

}  // namespace tern::cpu
