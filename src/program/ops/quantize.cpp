#include "program/ops/quantize.h"

#include "program/ops/shape_rules.h"

namespace tern::program {

Value result_of(const Program& p, const Quantize& op) {
  const RowsType& x = rows_of(p, op.x, Quantize::kName);
  Value v;
  v.element = Element::kQuant;
  v.quant = {x.width, x.axis, op.bits, op.group};
  return v;
}

OpCost cost_of(const Program& p, const Quantize& op, const StepShape& step) {
  const RowsType& x = rows_of(p, op.x, Quantize::kName);
  OpCost cost;
  cost.flops = 3.0 * static_cast<double>(x.width) * static_cast<double>(step.count(x.axis));
  cost.row_bytes = 1.5 * float_bytes(x, step);
  return cost;
}

}  // namespace tern::program
