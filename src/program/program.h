// A program: a straight list of ops over typed values, in execution order, single assignment, no
// control flow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/op.h"
#include "program/value.h"
#include "program/weights.h"

namespace tern::program {

enum class KvDtype : std::uint8_t { kF16, kF32 };
[[nodiscard]] constexpr int bytes_of(KvDtype dtype) { return dtype == KvDtype::kF16 ? 2 : 4; }
[[nodiscard]] constexpr std::string_view name_of(KvDtype dtype) {
  return dtype == KvDtype::kF16 ? "f16" : "f32";
}

// The KV cache of one layer: pages of kPagePositions positions, inside a page
// [kv_heads][positions][head_dim], K and V apart. All layers share one page table. (Slots of
// recurrent state get their own alternative here.)
struct StateDecl {
  std::string name;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  KvDtype k = KvDtype::kF16;
  KvDtype v = KvDtype::kF16;

  [[nodiscard]] std::uint64_t bytes_per_position() const {
    return static_cast<std::uint64_t>(kv_heads * head_dim) *
           static_cast<std::uint64_t>(bytes_of(k) + bytes_of(v));
  }
  bool operator==(const StateDecl&) const = default;
};

// A run of ops that belong together: layer parity tests, explain, a split over devices and a
// persistent decode kernel use it.
struct Region {
  std::string name;  // "layer"
  int index = -1;    // -1: there is only one
};

// Frequencies per pair and the factor on cos and sin.
struct RopeTable {
  std::vector<double> frequency;  // radians per position, one per pair
  double attention_factor = 1;
};

struct Output {
  std::string name;  // "logits", "layer_out.3"
  ValueId value = kNoValue;
};

// What a program was built for. Rows are an upper bound; a CPU works on the rows that are there.
struct Bucket {
  int rows = 1;
  std::int64_t context = 1024;
  bool operator==(const Bucket&) const = default;
};

struct Program {
  std::string name;
  Bucket bucket;
  int output_rows = 1;  // upper bound of BatchBlock::output_rows
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<Region> regions;
  std::vector<StateDecl> states;
  std::vector<RopeTable> rope_tables;
  std::vector<Output> outputs;

  [[nodiscard]] const Value& at(ValueId id) const { return values[id]; }
};

// Shape rule and cost of an op, by its kind.
[[nodiscard]] Value result_of(const Program& p, const Op& op);
[[nodiscard]] OpCost cost_of(const Program& p, const Op& op, const StepShape& step);

// Checks what every pass must keep: operands are defined before use, each value is assigned once,
// shapes follow the rules, state operands are states. Throws Error(kInternal) naming op and
// operand.
void check(const Program& p);

// One line per op: "%7 = linear(%5, blk.0.qkv [384 x 192 q4_1]) -> [rows, 384]".
[[nodiscard]] std::string to_text(const Program& p);
// "[rows, 384]" and the like.
[[nodiscard]] std::string shape_text(const Program& p, ValueId id);

// Row and context buckets (design: 1, 2, 4, ... 512; 1k, 4k, ... 256k). Beyond the last one the
// number itself.
[[nodiscard]] int rows_bucket(int rows);
[[nodiscard]] std::int64_t context_bucket(std::int64_t context);

}  // namespace tern::program
