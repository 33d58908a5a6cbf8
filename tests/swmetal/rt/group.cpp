// Runs one threadgroup: its SIMD-groups, collectives and barriers, in the order that was asked for.
#include <algorithm>
#include <cstring>

#include "worker.h"

namespace swm {
namespace {

class Group {
 public:
  Group(Worker& worker, Slot& slot) : w_(worker), slot_(slot), strict_(worker.options.strict) {}

  bool run(swm_dim position, swm_dim groups) {
    start(position, groups);
    unsigned order[SWM_LANES];
    while (live_ > 0) {
      w_.shuffle(order, simd_groups_);
      for (unsigned i = 0; i < simd_groups_; i++)
        if (!run_simd_group(order[i])) return false;
      if (live_ > 0 && !open_barrier()) return false;
    }
    for (unsigned i = 0; i < threads_; i++)
      if (slot_.fibers.overflowed(i))
        return fail("a thread used more than its " + std::to_string(FiberSet::kStackBytes >> 10) +
                    " KiB of stack");
    return true;
  }

 private:
  void start(swm_dim position, swm_dim groups);
  void fill_memory();
  bool run_simd_group(unsigned index);
  void run_lanes(unsigned base, const unsigned* order, unsigned lanes);
  bool open_barrier();
  bool fail(const std::string& what) {
    w_.fail(what);
    return false;
  }
  bool fail(const std::string& what, int line, int other) {
    return fail(what + ": line " + std::to_string(line) + " and line " + std::to_string(other));
  }

  Worker& w_;
  Slot& slot_;
  const bool strict_;
  unsigned threads_ = 0, simd_groups_ = 0, live_ = 0;
};

void Group::fill_memory() {
  if (!w_.options.poison) return;
  for (int i = 0; i < SWM_ARGUMENTS; i++)
    if (slot_.group_memory[i])
      std::memset(slot_.group_memory[i].get(), 0xff, slot_.args.group_bytes[i]);
  for (GroupVariable& v : slot_.variables) std::memset(v.memory.get(), 0xff, v.bytes);
}

void Group::start(swm_dim position, swm_dim groups) {
  const swm_dim full = w_.dispatch.group, grid = w_.dispatch.grid;
  const swm_dim first = {position.x * full.x, position.y * full.y, position.z * full.z};
  const swm_dim size = {std::min(full.x, grid.x - first.x), std::min(full.y, grid.y - first.y),
                        std::min(full.z, grid.z - first.z)};
  threads_ = live_ = size.x * size.y * size.z;
  simd_groups_ = (threads_ + SWM_LANES - 1) / SWM_LANES;
  const unsigned full_threads = full.x * full.y * full.z;
  slot_.fibers.resize(full_threads);
  slot_.simd_groups.resize((full_threads + SWM_LANES - 1) / SWM_LANES);
  sanitizers::acquire(&slot_.finished);  // by the group whose memory this one reuses
  slot_.sync = std::make_unique<SyncPoints>();
  fill_memory();
  for (unsigned i = 0; i < threads_; i++) {
    Fiber& f = slot_.fibers[i];
    const swm_dim at = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
    f.self = {{first.x + at.x, first.y + at.y, first.z + at.z},
              position,
              at,
              size,
              full,
              grid,
              groups,
              i,
              i % SWM_LANES,
              i / SWM_LANES,
              simd_groups_,
              (full_threads + SWM_LANES - 1) / SWM_LANES};
    f.state = FiberState::kReady;
    f.line = 0;
  }
  sanitizers::release(&slot_.sync->start);
}

void Group::run_lanes(unsigned base, const unsigned* order, unsigned lanes) {
  for (unsigned i = 0; i < lanes; i++) {
    Fiber& f = slot_.fibers[base + order[i]];
    if (f.state != FiberState::kReady) continue;
    w_.current = &f;
    ++w_.switches;
    enter(w_.host, f);
    if (f.state == FiberState::kDone) --live_;
    if (f.state == FiberState::kFailed) return;
  }
}

// Runs one SIMD-group until each of its lanes is at a threadgroup barrier or done.
bool Group::run_simd_group(unsigned index) {
  const unsigned base = index * SWM_LANES, lanes = std::min<unsigned>(SWM_LANES, threads_ - base);
  unsigned order[SWM_LANES];
  for (;;) {
    w_.shuffle(order, lanes);
    run_lanes(base, order, lanes);
    if (w_.failure) return false;
    unsigned waiting = 0, at_barrier = 0;
    for (unsigned i = 0; i < lanes; i++) {
      waiting |= unsigned{slot_.fibers[base + i].state == FiberState::kAtCollective} << i;
      at_barrier |= unsigned{slot_.fibers[base + i].state == FiberState::kAtBarrier} << i;
    }
    if (!waiting) return true;
    const auto lane = [&](unsigned mask) -> const Fiber& {
      return slot_.fibers[base + static_cast<unsigned>(__builtin_ctz(mask))];
    };
    const Fiber& first = lane(waiting);
    unsigned together = 0;
    for (unsigned i = 0; i < lanes; i++) {
      const Fiber& f = slot_.fibers[base + i];
      if ((waiting >> i & 1) && f.line == first.line && f.op == first.op) together |= 1u << i;
    }
    const unsigned elsewhere = (waiting & ~together) | at_barrier;
    if (strict_ && elsewhere)
      return fail("lanes of one SIMD-group wait at different operations", first.line,
                  lane(elsewhere).line);
    SimdGroup& group = slot_.simd_groups[index];
    swm_exchange& e = group.exchanges[group.turn];
    e.mask = together;
    e.is_done = 0;
    group.turn ^= 1;
    for (unsigned i = 0; i < lanes; i++)
      if (together >> i & 1) slot_.fibers[base + i].state = FiberState::kReady;
  }
}

bool Group::open_barrier() {
  int line = -1;
  for (unsigned i = 0; i < threads_; i++) {
    const Fiber& f = slot_.fibers[i];
    if (f.state != FiberState::kAtBarrier) continue;
    if (line < 0) line = f.line;
    if (strict_ && f.line != line)
      return fail("threads wait at different threadgroup barriers", line, f.line);
  }
  if (strict_ && live_ < threads_)
    return fail("threadgroup_barrier at line " + std::to_string(line) + " is not reached by " +
                std::to_string(threads_ - live_) + " threads that have ended");
  for (unsigned i = 0; i < threads_; i++)
    if (slot_.fibers[i].state == FiberState::kAtBarrier) slot_.fibers[i].state = FiberState::kReady;
  return true;
}

}  // namespace

bool run_group(Worker& worker, Slot& slot, swm_dim position, swm_dim groups) {
  worker.running = &slot;
  return Group(worker, slot).run(position, groups);
}

}  // namespace swm
