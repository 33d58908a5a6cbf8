// slice: columns [begin, begin + width) of a row value. A view: nothing moves.
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

struct Slice {
  static constexpr std::string_view kName = "slice";
  ValueId x = kNoValue;  // [rows, columns]
  std::int64_t begin = 0;
  std::int64_t width = 0;

  template <class F>
  void for_each_operand(F&& f) {
    f(x, Access::kRead);
  }
};
Value result_of(const Program& p, const Slice& op);
OpCost cost_of(const Program& p, const Slice& op, const StepShape& step);

}  // namespace tern::program
