#include "program/ops/swiglu.h"

#include "program/ops/shape_rules.h"

namespace tern::program {

Value result_of(const Program& p, const Swiglu& op) {
  const RowsType& gate = rows_of(p, op.gate, Swiglu::kName);
  require(gate == rows_of(p, op.up, Swiglu::kName), Swiglu::kName, "gate and up differ in shape");
  return float_rows(gate.width, gate.axis);
}

OpCost cost_of(const Program& p, const Swiglu& op, const StepShape& step) {
  const RowsType& gate = rows_of(p, op.gate, Swiglu::kName);
  OpCost cost;
  cost.flops = 5.0 * static_cast<double>(gate.width) * static_cast<double>(step.count(gate.axis));
  cost.row_bytes = 3 * float_bytes(gate, step);
  return cost;
}

}  // namespace tern::program
