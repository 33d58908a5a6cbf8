#include "program/ops/add.h"

#include "program/ops/shape_rules.h"

namespace tern::program {

Value result_of(const Program& p, const Add& op) {
  const RowsType& a = rows_of(p, op.a, Add::kName);
  require(a == rows_of(p, op.b, Add::kName), Add::kName, "the operands differ in shape");
  return float_rows(a.width, a.axis);
}

OpCost cost_of(const Program& p, const Add& op, const StepShape& step) {
  const RowsType& a = rows_of(p, op.a, Add::kName);
  OpCost cost;
  cost.flops = static_cast<double>(a.width) * static_cast<double>(step.count(a.axis));
  cost.row_bytes = 3 * float_bytes(a, step);
  return cost;
}

}  // namespace tern::program
