#include "program/ops/kv_store.h"

#include "program/ops/shape_rules.h"

namespace tern::program {

Value result_of(const Program& p, const KvStore& op) {
  const StateDecl& state = state_of(p, op.state, KvStore::kName);
  const RowsType expected{state.kv_heads * state.head_dim, RowAxis::kRows};
  require(rows_of(p, op.k, KvStore::kName) == expected, KvStore::kName,
          "k does not have the state's width");
  require(rows_of(p, op.v, KvStore::kName) == expected, KvStore::kName,
          "v does not have the state's width");
  return {};
}

OpCost cost_of(const Program& p, const KvStore& op, const StepShape& step) {
  const StateDecl& state = state_of(p, op.state, KvStore::kName);
  const auto rows = static_cast<double>(step.rows);
  OpCost cost;
  cost.state_bytes = rows * static_cast<double>(state.bytes_per_position());
  cost.row_bytes = rows * 8.0 * static_cast<double>(state.kv_heads * state.head_dim);
  return cost;
}

}  // namespace tern::program
