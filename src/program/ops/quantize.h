// quantize: rows of floats to integers with one scale per group.
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

struct Quantize {
  static constexpr std::string_view kName = "quantize";
  ValueId x = kNoValue;  // [rows, width]
  int bits = 12;
  int group = 128;

  template <class F>
  void for_each_operand(F&& f) {
    f(x, Access::kRead);
  }
};
Value result_of(const Program& p, const Quantize& op);
OpCost cost_of(const Program& p, const Quantize& op, const StepShape& step);

}  // namespace tern::program
