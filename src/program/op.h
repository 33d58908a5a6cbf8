// The closed list of ops. A new op is one header in ops/, one line here, one reference and one
// folder per backend.
#pragma once

#include <string_view>
#include <variant>

#include "program/ops/add.h"
#include "program/ops/attention.h"
#include "program/ops/embed.h"
#include "program/ops/gather_rows.h"
#include "program/ops/kv_store.h"
#include "program/ops/linear.h"
#include "program/ops/quantize.h"
#include "program/ops/rms_norm.h"
#include "program/ops/rope.h"
#include "program/ops/slice.h"
#include "program/ops/swiglu.h"

namespace tern::program {

using OpKind = std::variant<Embed, RmsNorm, Quantize, Linear, Slice, Rope, KvStore, Attention, Add,
                            Swiglu, GatherRows>;

struct Op {
  OpKind kind;
  ValueId result = kNoValue;  // kNoValue for an op that only changes a state
  std::uint32_t region = 0;   // index into Program::regions
};

[[nodiscard]] inline std::string_view name_of(const Op& op) {
  return std::visit([](const auto& o) -> std::string_view { return o.kName; }, op.kind);
}

// Calls f(operand, access) for every operand of the op; f may change the operand of a non-const op.
template <class F>
void for_each_operand(Op& op, F&& f) {
  std::visit([&f](auto& o) { o.for_each_operand(f); }, op.kind);
}
template <class F>
void for_each_operand(const Op& op, F&& f) {
  OpKind copy = op.kind;
  std::visit([&f](auto& o) { o.for_each_operand([&f](ValueId v, Access a) { f(v, a); }); }, copy);
}

}  // namespace tern::program
