// Small helpers that the shape rules of the ops share.
#pragma once

#include "base/error.h"
#include "program/program.h"

namespace tern::program {

// The value `id` as rows of floats; a programmer's error otherwise.
inline const RowsType& rows_of(const Program& p, ValueId id, std::string_view op) {
  if (id >= p.values.size() || p.at(id).element != Element::kF32)
    throw fail(ErrorCode::kInternal, "[program] {}: operand {} is not rows of floats", op, id);
  return p.at(id).rows;
}

inline const WeightType& weight_of(const Program& p, ValueId id, std::string_view op) {
  if (id >= p.values.size() || p.at(id).element != Element::kWeight)
    throw fail(ErrorCode::kInternal, "[program] {}: operand {} is not a weight", op, id);
  return p.at(id).weight;
}

inline const StateDecl& state_of(const Program& p, ValueId id, std::string_view op) {
  if (id >= p.values.size() || p.at(id).kind != ValueKind::kState)
    throw fail(ErrorCode::kInternal, "[program] {}: operand {} is not a state", op, id);
  return p.states[p.at(id).index];
}

// Throws when a shape rule does not hold.
inline void require(bool condition, std::string_view op, std::string_view rule) {
  if (!condition) throw fail(ErrorCode::kInternal, "[program] {}: {}", op, rule);
}

inline Value float_rows(std::int64_t width, RowAxis axis) {
  Value v;
  v.element = Element::kF32;
  v.rows = {width, axis};
  return v;
}

inline double float_bytes(const RowsType& t, const StepShape& step) {
  return 4.0 * static_cast<double>(t.width) * static_cast<double>(step.count(t.axis));
}

}  // namespace tern::program
