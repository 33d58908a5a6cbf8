// Stacks and switches of fibers.
#include "fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "sanitizers.h"

extern "C" void swm_switch(void** save, void* to);

namespace swm {
namespace {

constexpr std::uint64_t kCanary = 0x5357'4d5f'5354'4b21;

// The frame that swm_switch takes from a stack that was never run: registers, then the address to
// go to.
#if defined(__x86_64__)
constexpr std::size_t kFrameWords = 8, kEntryWord = 6;
#elif defined(__aarch64__)
constexpr std::size_t kFrameWords = 20, kEntryWord = 11;
#else
#error "swm_switch exists for x86-64 and aarch64"
#endif

}  // namespace

void FiberSet::drop() {
  for (Fiber& f : fibers_)
    if (f.tsan) sanitizers::destroy_fiber(f.tsan);
  if (stacks_) {
    sanitizers::unpoison(stacks_, fibers_.size() * kStackBytes);
    munmap(stacks_, fibers_.size() * kStackBytes);
  }
  fibers_.clear();
  stacks_ = nullptr;
}

void FiberSet::resize(unsigned count) {
  if (count <= fibers_.size()) return;
  drop();
  void* memory = mmap(nullptr, count * kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort();
  stacks_ = static_cast<char*>(memory);
  fibers_.resize(count);
  for (unsigned i = 0; i < count; i++) prepare(i);
}

void FiberSet::prepare(unsigned i) {
  Fiber& f = fibers_[i];
  f.stack = stacks_ + i * kStackBytes;
  std::memcpy(f.stack, &kCanary, sizeof kCanary);
  // The tops are shifted a little: strides of 64 KiB alias in the L1 cache.
  const std::size_t top = (kStackBytes - 64 - (i % 16) * 320) & ~std::size_t{15};
  void** words = reinterpret_cast<void**>(f.stack + top) - kFrameWords;
  std::memset(words, 0, kFrameWords * sizeof(void*));
  words[kEntryWord] = reinterpret_cast<void*>(entry_);
  f.stack_pointer = words;
  f.tsan = sanitizers::create_fiber();
}

void FiberSet::join(HostStack& host) {
  for (const Fiber& f : fibers_) sanitizers::join(f.tsan, host.tsan);
}

bool FiberSet::overflowed(unsigned i) const {
  return std::memcmp(fibers_[i].stack, &kCanary, sizeof kCanary) != 0;
}

void enter(HostStack& host, Fiber& fiber) {
  sanitizers::switch_to(fiber.tsan);
  sanitizers::leave_stack(&host.asan, fiber.stack, FiberSet::kStackBytes);
  swm_switch(&host.stack_pointer, fiber.stack_pointer);
  sanitizers::enter_stack(host.asan, nullptr, nullptr);
}

void leave(HostStack& host, Fiber& fiber) {
  sanitizers::switch_to(host.tsan);
  sanitizers::leave_stack(&fiber.asan, host.bottom, host.bytes);
  swm_switch(&fiber.stack_pointer, host.stack_pointer);
  sanitizers::enter_stack(fiber.asan, &host.bottom, &host.bytes);
}

void leave_for_ever(HostStack& host, Fiber& fiber) {
  sanitizers::switch_to(host.tsan);
  sanitizers::leave_stack(nullptr, host.bottom, host.bytes);
  swm_switch(&fiber.stack_pointer, host.stack_pointer);
  abort();
}

void arrived(HostStack& host) { sanitizers::enter_stack(nullptr, &host.bottom, &host.bytes); }

}  // namespace swm
