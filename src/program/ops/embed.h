// embed: y[r] = table[ids[r]], decoded to float.
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

struct Embed {
  static constexpr std::string_view kName = "embed";
  ValueId table = kNoValue;  // weight [vocabulary, hidden], any format

  template <class F>
  void for_each_operand(F&& f) {
    f(table, Access::kRead);
  }
};
Value result_of(const Program& p, const Embed& op);
OpCost cost_of(const Program& p, const Embed& op, const StepShape& step);

}  // namespace tern::program
