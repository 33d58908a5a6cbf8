// attention: softmax(q k^T * scale) v, causal, over the pages of each row's sequence; query head h
// reads key head h / (heads / kv_heads).
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

struct Attention {
  static constexpr std::string_view kName = "attention";
  ValueId q = kNoValue;  // [rows, heads * head_dim]
  ValueId state = kNoValue;
  std::int64_t heads = 0;
  float scale = 0;

  template <class F>
  void for_each_operand(F&& f) {
    f(q, Access::kRead);
    f(state, Access::kRead);
  }
};
Value result_of(const Program& p, const Attention& op);
OpCost cost_of(const Program& p, const Attention& op, const StepShape& step);

}  // namespace tern::program
