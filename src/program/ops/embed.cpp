#include "program/ops/embed.h"

#include "program/ops/shape_rules.h"

namespace tern::program {

Value result_of(const Program& p, const Embed& op) {
  const WeightType& table = weight_of(p, op.table, Embed::kName);
  return float_rows(table.inputs, RowAxis::kRows);
}

OpCost cost_of(const Program& p, const Embed& op, const StepShape& step) {
  const WeightType& table = weight_of(p, op.table, Embed::kName);
  const auto row =
      static_cast<double>(quant::bytes_for(table.format, static_cast<std::uint64_t>(table.inputs)));
  const auto rows = static_cast<double>(step.rows);
  OpCost cost;
  cost.row_bytes = rows * (row + 4.0 * static_cast<double>(table.inputs));
  return cost;
}

}  // namespace tern::program
