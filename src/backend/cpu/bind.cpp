#include "backend/cpu/bind.h"

namespace tern::cpu {

using program::Element;
using program::ValueId;

StepBinder::StepBinder(const CpuPlan& plan, const CpuWeights& weights, const CpuStates& states,
                       std::byte* arena, const std::vector<RopeRows>& ropes)
    : plan_(plan),
      program_(plan.program),
      weights_(weights),
      states_(states),
      arena_(arena),
      ropes_(ropes),
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
    const PackedVariant& v = *plan_.kernels.packed.variant;
    PackedLinearStep step;
    step.fn = is_float ? v.matmul_f32 : v.matmul;
    step.weight = packed;
    if (is_float) step.x = rows(e.x);
    if (!is_float) step.records = records(e.x);
    step.y = y;
    step.bias = bias(e.bias);
    step.residual = residual;
    return step;
  }
  if (const auto* matrix = std::get_if<BlockMatrix>(&weight)) {
    const BlockProductVariant& v = *plan_.kernels.block.variant;
    BlockLinearStep step;
    step.fn = is_float ? v.run_f32 : v.run;
    step.weight = matrix;
    if (is_float) step.x = rows(e.x);
    if (!is_float) step.block = block(e.x);
    step.y = y;
    step.bias = bias(e.bias);
    step.residual = residual;
    return step;
  }
  return DenseLinearStep{plan_.kernels.dense.variant->run,
                         &std::get<ResidentDense>(weight),
                         rows(e.x),
                         y,
                         bias(e.bias),
                         residual};
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
