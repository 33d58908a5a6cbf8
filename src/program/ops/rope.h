// rope: rotates pairs of each head by position * frequency; cos and sin are scaled by
// `attention_factor`.
#pragma once

#include "program/ops/op_common.h"

namespace tern::program {

// Which elements of a head form pair j of n/2.
enum class RopePairs : std::uint8_t {
  kHalves,    // j and j + n/2
  kAdjacent,  // 2j and 2j + 1
};

struct Rope {
  static constexpr std::string_view kName = "rope";
  ValueId x = kNoValue;  // [rows, heads * head_dim]
  std::int64_t head_dim = 0;
  std::uint32_t table = 0;  // index into Program::rope_tables
  RopePairs pairs = RopePairs::kHalves;

  template <class F>
  void for_each_operand(F&& f) {
    f(x, Access::kRead);
  }
};
Value result_of(const Program& p, const Rope& op);
OpCost cost_of(const Program& p, const Rope& op, const StepShape& step);

}  // namespace tern::program
