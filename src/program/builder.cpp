#include "program/builder.h"

#include "base/error.h"

namespace tern::program {

Builder::Builder(std::string name, Bucket bucket, int output_rows, const WeightSet& weights)
    : weights_(weights), weight_values_(weights.weights.size(), kNoValue) {
  program_.name = std::move(name);
  program_.bucket = bucket;
  program_.output_rows = output_rows;
}

void Builder::region(std::string name, int index) {
  program_.regions.push_back({std::move(name), index});
  region_ = static_cast<std::uint32_t>(program_.regions.size() - 1);
}

ValueId Builder::weight(WeightId id) {
  TERN_ASSERT(id < weight_values_.size());
  if (weight_values_[id] != kNoValue) return weight_values_[id];
  const WeightDecl& decl = weights_.weights[id];
  Value v;
  v.kind = ValueKind::kWeight;
  v.element = Element::kWeight;
  v.weight = {decl.rows, decl.inputs, decl.format};
  v.index = id;
  v.name = decl.name;
  program_.values.push_back(std::move(v));
  weight_values_[id] = static_cast<ValueId>(program_.values.size() - 1);
  return weight_values_[id];
}

ValueId Builder::kv_state(StateDecl decl) {
  Value v;
  v.kind = ValueKind::kState;
  v.index = static_cast<std::uint32_t>(program_.states.size());
  v.name = decl.name;
  program_.states.push_back(std::move(decl));
  program_.values.push_back(std::move(v));
  return static_cast<ValueId>(program_.values.size() - 1);
}

std::uint32_t Builder::rope_table(RopeTable table) {
  program_.rope_tables.push_back(std::move(table));
  return static_cast<std::uint32_t>(program_.rope_tables.size() - 1);
}

ValueId Builder::append(OpKind kind) {
  if (program_.regions.empty()) region("all");
  Op op{std::move(kind), kNoValue, region_};
  Value result = result_of(program_, op);
  if (result.element != Element::kNone) {
    result.kind = ValueKind::kActivation;
    program_.values.push_back(std::move(result));
    op.result = static_cast<ValueId>(program_.values.size() - 1);
  }
  program_.ops.push_back(std::move(op));
  return program_.ops.back().result;
}

ValueId Builder::embed(WeightId table) {
  program_.vocabulary = weights_.weights[table].rows;
  program_.hidden = weights_.weights[table].inputs;
  return append(Embed{weight(table)});
}

ValueId Builder::rms_norm(ValueId x, WeightId w, float eps) {
  return append(RmsNorm{x, weight(w), eps});
}

ValueId Builder::linear(ValueId x, WeightId w) {
  return append(Linear{.x = x, .weight = weight(w)});
}

ValueId Builder::linear(ValueId x, WeightId w, WeightId bias) {
  const ValueId matrix = weight(w);
  return append(Linear{.x = x, .weight = matrix, .bias = weight(bias)});
}

ValueId Builder::slice(ValueId x, std::int64_t begin, std::int64_t width) {
  return append(Slice{x, begin, width});
}

ValueId Builder::rope(ValueId x, std::int64_t head_dim, std::uint32_t table, RopePairs pairs) {
  return append(Rope{x, head_dim, table, pairs});
}

void Builder::kv_store(ValueId state, ValueId k, ValueId v) { append(KvStore{state, k, v}); }

ValueId Builder::attention(ValueId q, ValueId state, std::int64_t heads, float scale) {
  return append(Attention{q, state, heads, scale});
}

ValueId Builder::add(ValueId a, ValueId b) { return append(Add{a, b}); }

ValueId Builder::swiglu(ValueId gate, ValueId up) { return append(Swiglu{gate, up}); }

ValueId Builder::gather_rows(ValueId x) { return append(GatherRows{x}); }

void Builder::output(std::string name, ValueId value) {
  program_.outputs.push_back({std::move(name), value});
}

Program Builder::finish() && {
  check(program_);
  return std::move(program_);
}

}  // namespace tern::program
