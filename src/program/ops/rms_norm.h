// rms_norm: y = x / sqrt(mean(x^2) + eps) * weight over each run of `weight` columns (whole rows,
// or one head).
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

struct RmsNorm {
  static constexpr std::string_view kName = "rms_norm";
  ValueId x = kNoValue;       // [rows, n * width]
  ValueId weight = kNoValue;  // vector [width]
  float eps = 0;

  template <class F>
  void for_each_operand(F&& f) {
    f(x, Access::kRead);
    f(weight, Access::kRead);
  }
};
Value result_of(const Program& p, const RmsNorm& op);
OpCost cost_of(const Program& p, const RmsNorm& op, const StepShape& step);

}  // namespace tern::program
