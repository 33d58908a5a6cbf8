// add: y = a + b, element by element.
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

struct Add {
  static constexpr std::string_view kName = "add";
  ValueId a = kNoValue;
  ValueId b = kNoValue;

  template <class F>
  void for_each_operand(F&& f) {
    f(a, Access::kRead);
    f(b, Access::kRead);
  }
};
Value result_of(const Program& p, const Add& op);
OpCost cost_of(const Program& p, const Add& op, const StepShape& step);

}  // namespace tern::program
