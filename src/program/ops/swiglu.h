// swiglu: y = silu(gate) * up, silu(g) = g / (1 + exp(-g)).
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

struct Swiglu {
  static constexpr std::string_view kName = "swiglu";
  ValueId gate = kNoValue;  // [rows, width]
  ValueId up = kNoValue;    // [rows, width]

  template <class F>
  void for_each_operand(F&& f) {
    f(gate, Access::kRead);
    f(up, Access::kRead);
  }
};
Value result_of(const Program& p, const Swiglu& op);
OpCost cost_of(const Program& p, const Swiglu& op, const StepShape& step);

}  // namespace tern::program
