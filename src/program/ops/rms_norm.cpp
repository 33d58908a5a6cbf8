#include "program/ops/rms_norm.h"

#include "program/ops/shape_rules.h"

namespace tern::program {

Value result_of(const Program& p, const RmsNorm& op) {
  const RowsType& x = rows_of(p, op.x, RmsNorm::kName);
  const WeightType& w = weight_of(p, op.weight, RmsNorm::kName);
  require(w.rows == 1 && w.inputs > 0 && x.width % w.inputs == 0, RmsNorm::kName,
          "x is not a whole number of runs of the weight's width");
  return float_rows(x.width, x.axis);
}

OpCost cost_of(const Program& p, const RmsNorm& op, const StepShape& step) {
  const RowsType& x = rows_of(p, op.x, RmsNorm::kName);
  OpCost cost;
  cost.flops = 4.0 * static_cast<double>(x.width) * static_cast<double>(step.count(x.axis));
  cost.row_bytes = 2 * float_bytes(x, step);
  return cost;
}

}  // namespace tern::program
