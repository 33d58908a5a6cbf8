// linear: y = x W^T (+ bias) (+ residual). The only product by a weight.
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

struct Linear {
  static constexpr std::string_view kName = "linear";
  ValueId x = kNoValue;         // [rows, inputs] floats, or their quantised form
  ValueId weight = kNoValue;    // matrix [outputs, inputs]
  ValueId bias = kNoValue;      // vector [outputs] or none
  ValueId residual = kNoValue;  // [rows, outputs] or none; added after the sum with one rounding

  template <class F>
  void for_each_operand(F&& f) {
    f(x, Access::kRead);
    f(weight, Access::kRead);
    if (bias != kNoValue) f(bias, Access::kRead);
    if (residual != kNoValue) f(residual, Access::kRead);
  }
};
Value result_of(const Program& p, const Linear& op);
OpCost cost_of(const Program& p, const Linear& op, const StepShape& step);

}  // namespace tern::program
