#include "program/ops/linear.h"

#include "program/ops/shape_rules.h"

namespace tern::program {
namespace {

struct Operand {
  std::int64_t width = 0;
  RowAxis axis = RowAxis::kRows;
};

Operand operand_of(const Program& p, ValueId id) {
  require(id < p.values.size(), Linear::kName, "x is not a value");
  const Value& v = p.at(id);
  if (v.element == Element::kQuant) return {v.quant.width, v.quant.axis};
  const RowsType& rows = rows_of(p, id, Linear::kName);
  return {rows.width, rows.axis};
}

}  // namespace

Value result_of(const Program& p, const Linear& op) {
  const Operand x = operand_of(p, op.x);
  const WeightType& w = weight_of(p, op.weight, Linear::kName);
  require(x.width == w.inputs, Linear::kName, "x is not as wide as the weight");
  if (op.bias != kNoValue) {
    const WeightType& bias = weight_of(p, op.bias, Linear::kName);
    require(bias.rows == 1 && bias.inputs == w.rows, Linear::kName,
            "the bias is not as long as the weight has rows");
  }
  if (op.residual != kNoValue) {
    require(rows_of(p, op.residual, Linear::kName) == RowsType{w.rows, x.axis}, Linear::kName,
            "the residual does not have the shape of the result");
  }
  return float_rows(w.rows, x.axis);
}

OpCost cost_of(const Program& p, const Linear& op, const StepShape& step) {
  const Operand x = operand_of(p, op.x);
  const WeightType& w = weight_of(p, op.weight, Linear::kName);
  const auto rows = static_cast<double>(step.count(x.axis));
  const auto weights = static_cast<std::uint64_t>(w.rows) * static_cast<std::uint64_t>(w.inputs);
  OpCost cost;
  cost.flops = 2.0 * static_cast<double>(weights) * rows;
  cost.weight_bytes = static_cast<double>(quant::bytes_for(w.format, weights));
  cost.row_bytes =
      4.0 * rows * static_cast<double>(x.width + w.rows * (op.residual == kNoValue ? 1 : 2));
  return cost;
}

}  // namespace tern::program
