// The launches of each op of a plan.
#include "backend/metal/plan/metal_plan.h"

namespace tern::metal {
namespace {

using program::ValueId;

// Where the operands of an op lie.
class Binder {
 public:
  Binder(const MetalPlan& plan, ValueId result, const WeightPlaceFn& place_of)
      : plan_(plan), result_(result), place_of_(place_of) {}

  std::vector<Launch> operator()(const program::Embed& e) const {
    const program::WeightType& table = plan_.program.at(e.table).weight;
    TernEmbedParams p{};
    p.table = weight(e.table).offset;
    p.ids = plan_.block.ids;
    p.y = at(result_).offset;
    p.y_row_stride = stride(result_);
    p.status = plan_.status_offset;
    p.table_rows = static_cast<tern_u32>(table.rows);
    p.width = static_cast<tern_u32>(table.inputs);
    p.axis = axis(result_);
    return {on_weight(embed_launch(p, rows(result_)), e.table)};
  }

  std::vector<Launch> operator()(const program::RmsNorm& e) const {
    const std::int64_t run = plan_.program.at(e.weight).weight.inputs;
    TernRmsNormParams p{};
    p.x = at(e.x).offset;
    p.x_row_stride = stride(e.x);
    p.weight = weight(e.weight).offset;
    p.y = at(result_).offset;
    p.y_row_stride = stride(result_);
    p.width = static_cast<tern_u32>(run);
    p.runs = static_cast<tern_u32>(plan_.program.at(e.x).rows.width / run);
    p.eps = e.eps;
    p.axis = axis(result_);
    return {on_weight(rms_norm_launch(p, rows(result_)), e.weight)};
  }

  std::vector<Launch> operator()(const program::Quantize& e) const {
    const program::QuantRowsType& type = plan_.program.at(result_).quant;
    const RecordLayout layout = record_layout(type.width);
    TernQuantizeParams p{};
    p.x = at(e.x).offset;
    p.x_row_stride = stride(e.x);
    p.records = at(result_).offset;
    p.record_bytes = layout.record_bytes;
    p.scales_offset = layout.scales_offset;
    p.width = static_cast<tern_u32>(type.width);
    p.axis = axis_of(type.axis);
    return {quantize_launch(p, static_cast<std::uint32_t>(plan_.rows_of(type.axis)))};
  }

  std::vector<Launch> operator()(const program::Linear& e) const {
    const program::WeightType& w = plan_.program.at(e.weight).weight;
    const RecordLayout layout = record_layout(w.inputs);
    TernGemvParams p{};
    p.weights = weight(e.weight).offset;
    p.records = at(e.x).offset;
    p.record_bytes = layout.record_bytes;
    p.scales_offset = layout.scales_offset;
    p.y = at(result_).offset;
    p.y_row_stride = stride(result_);
    p.outputs = static_cast<tern_u32>(w.rows);
    p.groups = static_cast<tern_u32>(w.inputs / kTernGroup);
    p.axis = axis(result_);
    if (e.residual != program::kNoValue) {
      p.flags |= static_cast<tern_u32>(kTernGemvResidual);
      p.residual = at(e.residual).offset;
      p.residual_row_stride = stride(e.residual);
    }
    if (e.bias != program::kNoValue) {
      p.flags |= static_cast<tern_u32>(kTernGemvBias);
      p.bias = weight(e.bias).offset;
    }
    Launch launch = on_weight(gemv_launch(p, rows(result_)), e.weight);
    if (e.bias != program::kNoValue) launch.bias_buffer = weight(e.bias).buffer;
    return {launch};
  }

  std::vector<Launch> operator()(const program::GatherRows& e) const {
    TernGatherParams p{};
    p.x = at(e.x).offset;
    p.x_row_stride = stride(e.x);
    p.rows = plan_.block.output_rows;
    p.y = at(result_).offset;
    p.y_row_stride = stride(result_);
    p.width = static_cast<tern_u32>(plan_.program.at(e.x).rows.width);
    p.axis = kTernOutputRows;
    return {gather_launch(p, rows(result_))};
  }

  // Views move nothing; what has no kernel was refused when the plan was made.
  template <class Other>
  std::vector<Launch> operator()(const Other&) const {
    return {};
  }

 private:
  [[nodiscard]] const backend::Placement& at(ValueId v) const { return plan_.placements[v]; }
  [[nodiscard]] std::uint64_t stride(ValueId v) const {
    return static_cast<std::uint64_t>(at(v).row_stride);
  }
  [[nodiscard]] WeightPlace weight(ValueId v) const { return place_of_(plan_.program.at(v).index); }
  [[nodiscard]] Launch on_weight(Launch launch, ValueId v) const {
    launch.weight_buffer = launch.bias_buffer = weight(v).buffer;
    return launch;
  }
  [[nodiscard]] static tern_u32 axis_of(program::RowAxis axis) {
    return axis == program::RowAxis::kRows ? kTernRows : kTernOutputRows;
  }
  [[nodiscard]] tern_u32 axis(ValueId v) const { return axis_of(plan_.program.at(v).rows.axis); }
  [[nodiscard]] std::uint32_t rows(ValueId v) const {
    return static_cast<std::uint32_t>(plan_.rows_of(plan_.program.at(v).rows.axis));
  }

  const MetalPlan& plan_;
  ValueId result_;
  const WeightPlaceFn& place_of_;
};

}  // namespace

std::vector<Launch> bind_op(const MetalPlan& plan, const program::Op& op,
                            const WeightPlaceFn& place_of) {
  return std::visit(Binder(plan, op.result, place_of), op.kind);
}

}  // namespace tern::metal
