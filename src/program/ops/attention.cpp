#include "program/ops/attention.h"

#include "program/ops/shape_rules.h"

namespace tern::program {

Value result_of(const Program& p, const Attention& op) {
  const StateDecl& state = state_of(p, op.state, Attention::kName);
  const RowsType& q = rows_of(p, op.q, Attention::kName);
  require(op.heads > 0 && op.heads % state.kv_heads == 0, Attention::kName,
          "the heads are not a multiple of the key heads");
  require(q == RowsType{op.heads * state.head_dim, RowAxis::kRows}, Attention::kName,
          "q is not one head_dim per head");
  return float_rows(q.width, q.axis);
}

OpCost cost_of(const Program& p, const Attention& op, const StepShape& step) {
  const StateDecl& state = state_of(p, op.state, Attention::kName);
  const RowsType& q = rows_of(p, op.q, Attention::kName);
  const auto rows = static_cast<double>(step.rows);
  const auto context = static_cast<double>(step.context);
  OpCost cost;
  cost.flops = 4.0 * rows * context * static_cast<double>(q.width);
  cost.state_bytes = context * static_cast<double>(state.bytes_per_position());
  cost.row_bytes = 2 * float_bytes(q, step);
  return cost;
}

}  // namespace tern::program
