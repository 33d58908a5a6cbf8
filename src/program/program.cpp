#include "program/program.h"

#include "base/error.h"

namespace tern::program {

Value result_of(const Program& p, const Op& op) {
  return std::visit([&p](const auto& o) { return result_of(p, o); }, op.kind);
}

OpCost cost_of(const Program& p, const Op& op, const StepShape& step) {
  return std::visit([&](const auto& o) { return cost_of(p, o, step); }, op.kind);
}

namespace {

bool same_type(const Value& a, const Value& b) {
  if (a.element != b.element) return false;
  switch (a.element) {
    case Element::kF32:
      return a.rows == b.rows;
    case Element::kQuant:
      return a.quant == b.quant;
    case Element::kWeight:
      return a.weight == b.weight;
    case Element::kNone:
      return true;
  }
  return false;
}

}  // namespace

void check(const Program& p) {
  std::vector<bool> defined(p.values.size(), false);
  for (std::size_t i = 0; i < p.values.size(); ++i)
    defined[i] = p.values[i].kind != ValueKind::kActivation;
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    const Op& op = p.ops[i];
    if (op.region >= p.regions.size())
      throw fail(ErrorCode::kInternal, "[program] op {} ({}) is in no region", i, name_of(op));
    for_each_operand(op, [&](ValueId v, Access access) {
      if (v >= p.values.size() || !defined[v])
        throw fail(ErrorCode::kInternal, "[program] op {} ({}): operand {} is not defined", i,
                   name_of(op), v);
      if (access != Access::kRead && p.at(v).kind != ValueKind::kState)
        throw fail(ErrorCode::kInternal, "[program] op {} ({}) writes a value that is no state", i,
                   name_of(op));
    });
    const Value expected = result_of(p, op);
    if (op.result == kNoValue) {
      if (expected.element != Element::kNone)
        throw fail(ErrorCode::kInternal, "[program] op {} ({}) drops its result", i, name_of(op));
      continue;
    }
    if (op.result >= p.values.size() || defined[op.result])
      throw fail(ErrorCode::kInternal, "[program] op {} ({}) assigns value {} again", i,
                 name_of(op), op.result);
    if (!same_type(expected, p.at(op.result)))
      throw fail(ErrorCode::kInternal, "[program] op {} ({}): the result's shape is not the rule's",
                 i, name_of(op));
    defined[op.result] = true;
  }
  for (const Output& output : p.outputs) {
    if (output.value >= p.values.size() || !defined[output.value])
      throw fail(ErrorCode::kInternal, "[program] output '{}' is not defined", output.name);
  }
}

std::string shape_text(const Program& p, ValueId id) {
  const Value& v = p.at(id);
  const auto axis = [](RowAxis a) { return a == RowAxis::kRows ? "rows" : "outputs"; };
  switch (v.element) {
    case Element::kF32:
      return fmt::format("[{}, {}]", axis(v.rows.axis), v.rows.width);
    case Element::kQuant:
      return fmt::format("[{}, {} i{}]", axis(v.quant.axis), v.quant.width, v.quant.bits);
    case Element::kWeight:
      if (v.weight.rows == 1) return fmt::format("{} [{}]", v.name, v.weight.inputs);
      return fmt::format("{} [{} x {} {}]", v.name, v.weight.rows, v.weight.inputs,
                         quant::info(v.weight.format).tag);
    case Element::kNone:
      break;
  }
  return v.name;
}

std::string to_text(const Program& p) {
  std::string text;
  for (const Op& op : p.ops) {
    std::string operands;
    for_each_operand(op, [&](ValueId v, Access) {
      if (!operands.empty()) operands += ", ";
      operands += p.at(v).kind == ValueKind::kActivation ? fmt::format("%{}", v) : shape_text(p, v);
    });
    if (op.result == kNoValue) {
      text += fmt::format("{}({})\n", name_of(op), operands);
    } else {
      text += fmt::format("%{} = {}({}) -> {}\n", op.result, name_of(op), operands,
                          shape_text(p, op.result));
    }
  }
  return text;
}

int rows_bucket(int rows) {
  for (int bucket = 1; bucket <= 512; bucket *= 2)
    if (rows <= bucket) return bucket;
  return rows;
}

std::int64_t context_bucket(std::int64_t context) {
  for (std::int64_t bucket = 1024; bucket <= 262144; bucket *= 4)
    if (context <= bucket) return bucket;
  return context;
}

}  // namespace tern::program
