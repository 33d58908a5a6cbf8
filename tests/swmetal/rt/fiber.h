// Fibers: one per GPU thread, with a stack of its own, run and resumed by one OS thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "swm_abi.h"

namespace swm {

enum class FiberState : std::uint8_t { kReady, kAtBarrier, kAtCollective, kDone, kFailed };

struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;  // its low end
  FiberState state = FiberState::kDone;
  int op = 0, line = 0;  // where it waits
  swm_thread self{};
  void* tsan = nullptr;
  void* asan = nullptr;
};

// The stack of an OS thread, as the one who runs fibers.
struct HostStack {
  void* stack_pointer = nullptr;
  void* tsan = nullptr;
  void* asan = nullptr;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};

// Fibers with their stacks. `entry` is called on the fiber's stack when it is first entered, and
// must not return.
class FiberSet {
 public:
  static constexpr std::size_t kStackBytes = 64 << 10;

  explicit FiberSet(void (*entry)()) : entry_(entry) {}
  ~FiberSet() { drop(); }
  FiberSet(const FiberSet&) = delete;
  FiberSet& operator=(const FiberSet&) = delete;

  void resize(unsigned count);  // only grows
  Fiber& operator[](unsigned i) { return fibers_[i]; }
  void join(HostStack& host);  // finished or abandoned: the host goes on after all of them
  [[nodiscard]] bool overflowed(unsigned i) const;  // wrote to the low end of its stack

 private:
  void drop();
  void prepare(unsigned i);

  void (*entry_)();
  char* stacks_ = nullptr;
  std::vector<Fiber> fibers_;
};

void enter(HostStack& host, Fiber& fiber);  // host -> fiber, until it leaves
void leave(HostStack& host, Fiber& fiber);  // fiber -> host, until it is entered again
[[noreturn]] void leave_for_ever(HostStack& host, Fiber& fiber);
void arrived(HostStack& host);  // first call of a fiber's entry

}  // namespace swm
