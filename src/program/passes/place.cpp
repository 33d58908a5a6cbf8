#include "program/passes/place.h"

#include <algorithm>
#include <limits>

namespace tern::program {
namespace {

struct Life {
  ValueId value = kNoValue;
  std::size_t first = 0;  // phase that makes it
  std::size_t last = 0;   // last phase that reads it
  std::uint64_t bytes = 0;
};

std::vector<Life> find_lives(const Program& p, const std::vector<ViewOf>& views,
                             const std::function<std::uint64_t(ValueId)>& bytes_of,
                             std::span<const std::uint32_t> phase_of_op) {
  std::vector<Life> by_value(p.values.size());
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    const Op& op = p.ops[i];
    const std::size_t phase = phase_of_op.empty() ? i : phase_of_op[i];
    for_each_operand(op, [&](ValueId v, Access) {
      if (p.at(v).kind == ValueKind::kActivation) by_value[views[v].root].last = phase;
    });
    if (op.result == kNoValue || views[op.result].root != op.result) continue;
    by_value[op.result] = {op.result, phase, phase, bytes_of(op.result)};
  }
  for (const Output& output : p.outputs)
    by_value[views[output.value].root].last = std::numeric_limits<std::size_t>::max();
  std::vector<Life> lives;
  for (const Life& life : by_value)
    if (life.value != kNoValue && life.bytes > 0) lives.push_back(life);
  return lives;
}

}  // namespace

std::vector<ViewOf> resolve_views(const Program& p) {
  std::vector<ViewOf> views(p.values.size());
  for (ValueId v = 0; v < views.size(); ++v) views[v] = {v, 0};
  for (const Op& op : p.ops)
    if (const Slice* slice = std::get_if<Slice>(&op.kind))
      views[op.result] = {views[slice->x].root, views[slice->x].column + slice->begin};
  return views;
}

ArenaPlan place(const Program& p, const std::function<std::uint64_t(ValueId)>& bytes_of,
                std::uint64_t alignment, std::span<const std::uint32_t> phase_of_op) {
  std::vector<Life> lives = find_lives(p, resolve_views(p), bytes_of, phase_of_op);
  // Large values first, each at the lowest place that no value alive at the same time takes.
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  ArenaPlan plan;
  plan.offsets.assign(p.values.size(), 0);
  std::vector<Life> placed;
  for (const Life& life : lives) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (const Life& other : placed)
      if (other.first <= life.last && life.first <= other.last)
        taken.emplace_back(plan.offsets[other.value], plan.offsets[other.value] + other.bytes);
    std::sort(taken.begin(), taken.end());
    std::uint64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin >= offset + life.bytes) break;
      offset = std::max(offset, (end + alignment - 1) & ~(alignment - 1));
    }
    plan.offsets[life.value] = offset;
    plan.bytes = std::max(plan.bytes, offset + life.bytes);
    placed.push_back(life);
  }
  plan.bytes = (plan.bytes + alignment - 1) & ~(alignment - 1);
  return plan;
}

}  // namespace tern::program
