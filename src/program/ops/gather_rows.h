// gather_rows: y[i] = x[output_rows[i]], so that the head sees only the rows whose logits are
// wanted.
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

struct GatherRows {
  static constexpr std::string_view kName = "gather_rows";
  ValueId x = kNoValue;  // [rows, width]

  template <class F>
  void for_each_operand(F&& f) {
    f(x, Access::kRead);
  }
};
Value result_of(const Program& p, const GatherRows& op);
OpCost cost_of(const Program& p, const GatherRows& op, const StepShape& step);

}  // namespace tern::program
