#include "program/ops/rope.h"

#include "program/ops/shape_rules.h"

namespace tern::program {

Value result_of(const Program& p, const Rope& op) {
  const RowsType& x = rows_of(p, op.x, Rope::kName);
  require(op.head_dim > 0 && x.width % op.head_dim == 0, Rope::kName,
          "x is not a whole number of heads");
  require(op.table < p.rope_tables.size(), Rope::kName, "there is no such table");
  const auto rotated = 2 * static_cast<std::int64_t>(p.rope_tables[op.table].frequency.size());
  require(rotated <= op.head_dim, Rope::kName, "the table rotates more than a head");
  return float_rows(x.width, x.axis);
}

OpCost cost_of(const Program& p, const Rope& op, const StepShape& step) {
  const RowsType& x = rows_of(p, op.x, Rope::kName);
  OpCost cost;
  cost.flops = 3.0 * static_cast<double>(x.width) * static_cast<double>(step.count(x.axis));
  cost.row_bytes = 2 * float_bytes(x, step);
  return cost;
}

}  // namespace tern::program
