#include "program/ops/gather_rows.h"

#include "program/ops/shape_rules.h"

namespace tern::program {

Value result_of(const Program& p, const GatherRows& op) {
  const RowsType& x = rows_of(p, op.x, GatherRows::kName);
  require(x.axis == RowAxis::kRows, GatherRows::kName, "x has been gathered already");
  return float_rows(x.width, RowAxis::kOutputRows);
}

OpCost cost_of(const Program& p, const GatherRows& op, const StepShape& step) {
  const RowsType& x = rows_of(p, op.x, GatherRows::kName);
  OpCost cost;
  cost.row_bytes = 8.0 * static_cast<double>(x.width) * static_cast<double>(step.output_rows);
  return cost;
}

}  // namespace tern::program
