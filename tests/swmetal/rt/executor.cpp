// Loading of modules, checks of a dispatch, and the workers that share its threadgroups.
#include "executor.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "worker.h"

namespace swm {
namespace {

constexpr std::uint64_t kSmallGrid = 1 << 14;  // threads; below it a second OS thread costs more

// First code on a fiber's stack. A fiber is reused by the next threadgroup.
[[noreturn]] void fiber_main() {
  arrived(this_worker()->host);
  for (;;) {
    Worker* w = this_worker();
    Fiber& f = *w->current;
    Slot& slot = *w->running;
    sanitizers::acquire(&slot.sync->start);
    w->dispatch.kernel->run(&slot.args, &f.self);
    f.state = FiberState::kDone;
    sanitizers::release(&slot.finished);
    leave(w->host, f);
  }
}

std::string check_arguments(const Dispatch& d) {
  for (unsigned i = 0; i < SWM_ARGUMENTS; i++) {
    if ((d.kernel->buffers >> i & 1) && !d.args.buffer[i])
      return "nothing is bound to buffer " + std::to_string(i);
    if ((d.kernel->group_memories >> i & 1) && !d.args.group_bytes[i])
      return "threadgroup memory " + std::to_string(i) + " has no length";
  }
  const std::uint64_t limit = d.kernel->max_threads ? d.kernel->max_threads : kMaxThreads;
  for (const unsigned n : {d.group.x, d.group.y, d.group.z})
    if (n < 1 || n > kMaxThreads) return "a threadgroup size of " + std::to_string(n) + " threads";
  const std::uint64_t threads = std::uint64_t{d.group.x} * d.group.y * d.group.z;
  if (threads > limit)
    return std::to_string(threads) + " threads per threadgroup; at most " + std::to_string(limit) +
           " are allowed";
  if (!d.grid.x || !d.grid.y || !d.grid.z) return "a grid without threads";
  std::size_t bytes = 0;
  for (const unsigned long n : d.args.group_bytes) bytes += n;
  if (bytes > kMaxGroupMemory)
    return "threadgroup memory of " + std::to_string(bytes) + " bytes; at most " +
           std::to_string(kMaxGroupMemory) + " are there";
  return "";
}

unsigned divide_up(unsigned a, unsigned b) { return a / b + (a % b != 0); }

// The order in which threadgroups are begun: 0..total-1 as they are, backwards, or permuted.
class GroupOrder {
 public:
  GroupOrder(std::uint64_t total, const Options& o) : total_(total), order_(o.order) {
    factor_ = (o.seed * 2654435761u) % total | 1;
    while (std::gcd(factor_, total) != 1) ++factor_;
    first_ = o.seed % total;
  }
  [[nodiscard]] std::uint64_t at(std::uint64_t i) const {
    if (order_ == Order::kReverse) return total_ - 1 - i;
    if (order_ == Order::kForward) return i;
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(i) * factor_ + first_) %
                                      total_);
  }

 private:
  std::uint64_t total_, factor_ = 1, first_ = 0;
  Order order_;
};

}  // namespace

Module::~Module() {
#if !defined(SWM_ASAN) && !defined(SWM_TSAN)
  dlclose(handle_);  // the sanitizers' reports need the lines of a module to the end
#endif
}

std::shared_ptr<const Module> Module::load(const std::string& path, std::string& error) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    error = dlerror();
    return nullptr;
  }
  const auto modules = reinterpret_cast<swm_modules_function>(dlsym(handle, "swm_modules"));
  const auto connect = reinterpret_cast<swm_connect_function>(dlsym(handle, "swm_connect"));
  if (!modules || !connect) {
    error = path + ": not a module of software Metal";
  } else if (connect(SWM_ABI_VERSION, &kApi) != SWM_ABI_VERSION) {
    error = path + ": a module of another version of software Metal; build it again";
  } else {
    unsigned count = 0;
    const swm_module* const* module = modules(&count);
    std::vector<const swm_kernel*> kernels;
    for (unsigned i = 0; i < count; i++)
      for (unsigned k = 0; k < module[i]->kernel_count; k++)
        kernels.push_back(&module[i]->kernels[k]);
    return std::shared_ptr<const Module>(new Module(handle, std::move(kernels)));
  }
  dlclose(handle);
  return nullptr;
}

const swm_kernel* Module::find(const std::string& name) const {
  for (const swm_kernel* k : kernels_)
    if (name == k->name) return k;
  return nullptr;
}

Worker::Worker(const Dispatch& d, const Options& o, Failure& f, unsigned index)
    : dispatch(d), options(o), failure(f), random(o.seed + index * 7919u) {
  host.tsan = sanitizers::current_fiber();
  for (int i = 0; i < (sanitizers::kThreads ? 2 : 1); i++) {
    slots.push_back(std::make_unique<Slot>(fiber_main));
    Slot& slot = *slots.back();
    slot.args = d.args;
    for (unsigned k = 0; k < SWM_ARGUMENTS; k++) {
      if (!d.args.group_bytes[k]) continue;
      slot.group_memory[k].reset(new char[d.args.group_bytes[k]]);
      slot.args.group_memory[k] = slot.group_memory[k].get();
    }
  }
}

void Worker::shuffle(unsigned* order, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    order[i] = options.order == Order::kReverse ? count - 1 - i : i;
  if (options.order == Order::kRandom) std::shuffle(order, order + count, random);
}

bool run(const Dispatch& d, const Options& o, std::string& error, Counts* counts) {
  Failure failure;
  const std::string wrong = check_arguments(d);
  if (!wrong.empty()) {
    failure.set(d, wrong);
    error = failure.text();
    return false;
  }
  const swm_dim groups = {divide_up(d.grid.x, d.group.x), divide_up(d.grid.y, d.group.y),
                          divide_up(d.grid.z, d.group.z)};
  const std::uint64_t total = std::uint64_t{groups.x} * groups.y * groups.z;
  const std::uint64_t threads = std::uint64_t{d.grid.x} * d.grid.y * d.grid.z;
  const std::uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::uint64_t wanted = o.workers ? o.workers : threads < kSmallGrid ? 1 : cores;
  const GroupOrder order(total, o);
  std::atomic<std::uint64_t> next{0}, switches{0};

  const auto work = [&](unsigned index) {
    Worker w(d, o, failure, index);
    set_this_worker(&w);
    for (std::uint64_t turn = 0;; turn++) {
      const std::uint64_t i = next.fetch_add(1);
      if (i >= total || failure) break;
      const std::uint64_t g = order.at(i);
      const swm_dim position = {static_cast<unsigned>(g % groups.x),
                                static_cast<unsigned>(g / groups.x % groups.y),
                                static_cast<unsigned>(g / groups.x / groups.y)};
      if (!run_group(w, w.slot_for(turn), position, groups)) break;
    }
    for (const auto& slot : w.slots) slot->fibers.join(w.host);
    switches += w.switches;
    set_this_worker(nullptr);
  };
  if (std::min(wanted, total) == 1) {
    work(0);
  } else {
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < std::min(wanted, total); i++) workers.emplace_back(work, i);
    for (std::thread& t : workers) t.join();
  }
  if (counts) {
    counts->threads += threads;
    counts->groups += total;
    counts->switches += switches;
  }
  if (failure) error = failure.text();
  return !failure;
}

}  // namespace swm
