#include "program/ops/slice.h"

#include "program/ops/shape_rules.h"

namespace tern::program {

Value result_of(const Program& p, const Slice& op) {
  const RowsType& x = rows_of(p, op.x, Slice::kName);
  require(op.begin >= 0 && op.width > 0 && op.begin + op.width <= x.width, Slice::kName,
          "the columns do not lie inside of x");
  return float_rows(op.width, x.axis);
}

OpCost cost_of(const Program&, const Slice&, const StepShape&) { return {}; }

}  // namespace tern::program
