// The pass `fuse`: replaces patterns of plain ops by fused ones, where no one else reads what
// disappears.
#include <vector>

#include "program/passes/passes.h"

namespace tern::program {
namespace {

// How often each value is read, outputs included.
std::vector<int> count_readers(const Program& p) {
  std::vector<int> readers(p.values.size(), 0);
  for (const Op& op : p.ops) for_each_operand(op, [&](ValueId v, Access) { ++readers[v]; });
  for (const Output& output : p.outputs) ++readers[output.value];
  return readers;
}

std::vector<std::size_t> find_producers(const Program& p) {
  std::vector<std::size_t> producer(p.values.size(), p.ops.size());
  for (std::size_t i = 0; i < p.ops.size(); ++i)
    if (p.ops[i].result != kNoValue) producer[p.ops[i].result] = i;
  return producer;
}

// linear + add -> linear with residual. The product moves to the place of the add, so that the
// residual is defined; a product reads no state, hence crosses none.
void fuse_residual(Program& p) {
  const std::vector<int> readers = count_readers(p);
  const std::vector<std::size_t> producer = find_producers(p);
  std::vector<bool> removed(p.ops.size(), false);
  const auto try_side = [&](Op& add_op, ValueId product, ValueId residual) {
    if (readers[product] != 1 || producer[product] >= p.ops.size() || removed[producer[product]])
      return false;
    Op& linear_op = p.ops[producer[product]];
    const Linear* linear = std::get_if<Linear>(&linear_op.kind);
    if (!linear || linear->residual != kNoValue) return false;
    Linear fused = *linear;
    fused.residual = residual;
    add_op.kind = fused;
    removed[producer[product]] = true;
    return true;
  };
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    const Add* add = std::get_if<Add>(&p.ops[i].kind);
    if (!add || add->a == add->b) continue;
    const Add sides = *add;
    if (!try_side(p.ops[i], sides.b, sides.a)) try_side(p.ops[i], sides.a, sides.b);
  }
  std::vector<Op> kept;
  for (std::size_t i = 0; i < p.ops.size(); ++i)
    if (!removed[i]) kept.push_back(std::move(p.ops[i]));
  p.ops = std::move(kept);
}

}  // namespace

Program fuse(const Program& p) {
  Program out = p;
  fuse_residual(out);
  check(out);
  return out;
}

Program run_passes(const Program& p, Activations activations, const KeepsFloats& keeps_floats) {
  return fuse(quantize(p, activations, keeps_floats));
}

}  // namespace tern::program
