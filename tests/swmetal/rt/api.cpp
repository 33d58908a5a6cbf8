// What kernels call while they run: barriers, collectives, threadgroup variables, constants.
#include <cstring>
#include <utility>

#include "worker.h"

namespace swm {
namespace {

thread_local Worker* t_worker;

constexpr int kSimdBarrier = 0;  // simdgroup_barrier, the only collective that orders memory

void barrier(int line) {
  Worker* w = this_worker();
  Fiber& f = *w->current;
  f.state = FiberState::kAtBarrier;
  f.line = line;
  sanitizers::release(&w->running->sync->barrier);
  leave(w->host, f);
  sanitizers::acquire(&w->running->sync->barrier);
}

swm_exchange* exchange(int op, int line, const void* payload, unsigned bytes) {
  Worker* w = this_worker();
  Fiber& f = *w->current;
  Slot& slot = *w->running;
  SimdGroup& group = slot.simd_groups[f.self.simd_group];
  swm_exchange& e = group.exchanges[group.turn];
  // Not memcpy: the thread sanitizer would see it as an access of this fiber.
  volatile unsigned char* to = e.slot[f.self.lane];
  const unsigned char* from = static_cast<const unsigned char*>(payload);
  for (unsigned i = 0; i < bytes; i++) to[i] = from[i];
  f.state = FiberState::kAtCollective;
  f.line = line;
  f.op = op;
  char* sync = op == kSimdBarrier ? &slot.sync->simd_barrier[f.self.simd_group] : nullptr;
  if (sync) sanitizers::release(sync);
  leave(w->host, f);
  if (sync) sanitizers::acquire(sync);
  return &e;
}

const swm_thread* self() { return &this_worker()->current->self; }

// Ends the thread that calls: its stack is never resumed, so nothing on it may own memory.
[[noreturn]] void end_thread(Worker& w) {
  w.current->state = FiberState::kFailed;
  leave_for_ever(w.host, *w.current);
}

void* group_variable(const void* key, unsigned long bytes) {
  Worker* w = this_worker();
  Slot& slot = *w->running;
  for (GroupVariable& v : slot.variables)
    if (v.key == key) {
      sanitizers::acquire(&slot.sync->variables);
      return v.memory.get();
    }
  std::size_t total = bytes;
  for (const GroupVariable& v : slot.variables) total += v.bytes;
  for (const unsigned long n : slot.args.group_bytes) total += n;
  if (total > kMaxGroupMemory) {
    w->fail("threadgroup memory of " + std::to_string(total) + " bytes; at most " +
            std::to_string(kMaxGroupMemory) + " are there");
    end_thread(*w);
  }
  GroupVariable v{key, bytes, std::unique_ptr<char[]>(new char[bytes])};
  if (w->options.poison) std::memset(v.memory.get(), 0xff, bytes);
  slot.variables.push_back(std::move(v));
  sanitizers::release(&slot.sync->variables);
  return slot.variables.back().memory.get();
}

const void* constant(unsigned index) {
  Worker* w = this_worker();
  const ConstantValues* values = w->dispatch.constants;
  if (values && index < values->size() && !(*values)[index].empty()) return (*values)[index].data();
  const swm_constant& c = w->dispatch.kernel->module->constants[index];
  w->fail("function constant " + std::string(c.name) + " (index " + std::to_string(c.index) +
          ") is read, but was not set");
  end_thread(*w);
}

int is_constant_set(unsigned index) {
  const ConstantValues* values = this_worker()->dispatch.constants;
  return values && index < values->size() && !(*values)[index].empty();
}

__attribute__((noreturn)) void fail(const char* what, int detail, int line) {
  Worker* w = this_worker();
  {
    std::string text = std::string(what) + " " + std::to_string(detail);
    if (line) text += ", line " + std::to_string(line);
    w->fail(text);
  }
  end_thread(*w);
}

}  // namespace

const swm_api kApi = {barrier, exchange, self, group_variable, constant, is_constant_set, fail};

// A fiber never changes its OS thread, but the compiler must not keep the address over a switch.
__attribute__((noinline)) Worker* this_worker() {
  asm volatile("");
  return t_worker;
}

void set_this_worker(Worker* worker) { t_worker = worker; }

void Failure::set(const Dispatch& dispatch, const std::string& what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_set_) return;
  text_ = std::string(dispatch.kernel->module->source) + ": kernel " + dispatch.kernel->name +
          ": " + what;
  is_set_ = true;
}

}  // namespace swm
