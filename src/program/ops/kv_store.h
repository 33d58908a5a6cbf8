// kv_store: writes the rows' keys and values into the pages of their sequences.
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

struct KvStore {
  static constexpr std::string_view kName = "kv_store";
  ValueId state = kNoValue;
  ValueId k = kNoValue;  // [rows, kv_heads * head_dim]
  ValueId v = kNoValue;  // [rows, kv_heads * head_dim]

  template <class F>
  void for_each_operand(F&& f) {
    f(state, Access::kUpdate);
    f(k, Access::kRead);
    f(v, Access::kRead);
  }
};
Value result_of(const Program& p, const KvStore& op);
OpCost cost_of(const Program& p, const KvStore& op, const StepShape& step);

}  // namespace tern::program
