#include "base/mapped_range.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#if defined(__linux__)
#include <sys/syscall.h>
#endif

namespace tern {
namespace {

static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);
static_assert(std::atomic<MappedRange*>::is_always_lock_free);

// The process state of this unit: a signal handler has nobody to be passed in by.
std::atomic<MappedRange*> first_range{nullptr};
struct sigaction previous_action;  // written once, before the handler can run
std::once_flag install_once;
std::uintptr_t page_bytes = 4096;  // likewise

MappedRange* find_range(std::uintptr_t address) {
  for (MappedRange* r = first_range.load(std::memory_order_acquire); r != nullptr; r = r->next) {
    const std::uintptr_t begin = r->begin.load(std::memory_order_acquire);
    const std::uintptr_t end = r->end.load(std::memory_order_acquire);
    // The second look at begin: the entry may have got another range in between.
    if (begin != 0 && address >= begin && address < end &&
        r->begin.load(std::memory_order_acquire) == begin) {
      return r;
    }
  }
  return nullptr;
}

// Inside the handler. The system call itself: nothing that replaces mmap() in the program, such as
// a checker of memory, is made for signal handlers.
bool map_zeros(std::uintptr_t address, std::uintptr_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#if defined(__linux__) && defined(__LP64__)
  return ::syscall(SYS_mmap, address, bytes, PROT_READ, kFlags, -1, 0) != -1;
#else
  return ::mmap(reinterpret_cast<void*>(address), bytes, PROT_READ, kFlags, -1, 0) != MAP_FAILED;
#endif
}

// True when the fault was ours and reading can go on, with zeros.
bool repair(std::uintptr_t address) {
  MappedRange* range = find_range(address);
  if (range == nullptr) return false;
  range->is_damaged.store(true, std::memory_order_release);
  if (map_zeros(address / page_bytes * page_bytes, page_bytes)) return true;
  // Every page in its own mapping can meet the system's limit of mappings; the whole range is one.
  const std::uintptr_t begin = range->begin.load(std::memory_order_acquire);
  const std::uintptr_t end = range->end.load(std::memory_order_acquire);
  return begin != 0 && map_zeros(begin, (end - begin + page_bytes - 1) / page_bytes * page_bytes);
}

void pass_on(int number, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0 && previous_action.sa_sigaction != nullptr) {
    previous_action.sa_sigaction(number, info, context);
    return;
  }
  const bool is_fault = info->si_code > 0;
  if (previous_action.sa_handler == SIG_IGN && !is_fault) return;
  if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(number);
    return;
  }
  // Die as without the handler: a fault comes again on return, a sent signal has to be sent again.
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(number, &standard, nullptr);
  if (!is_fault) ::raise(number);
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool is_fault = info->si_code > 0;  // not sent by kill()
  if (!is_fault || !repair(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
    pass_on(number, info, context);
  }
  errno = saved_errno;
}

void install() {
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  ::sigaction(SIGBUS, nullptr, &previous_action);
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

MappedRange* take_free_entry() {
  for (MappedRange* r = first_range.load(std::memory_order_acquire); r != nullptr; r = r->next) {
    bool is_taken = false;
    if (r->is_taken.compare_exchange_strong(is_taken, true, std::memory_order_acq_rel)) return r;
  }
  auto* const entry = new MappedRange;  // kept for the life of the process
  entry->is_taken.store(true, std::memory_order_relaxed);
  entry->next = first_range.load(std::memory_order_relaxed);
  while (!first_range.compare_exchange_weak(entry->next, entry, std::memory_order_acq_rel)) {
  }
  return entry;
}

}  // namespace

MappedRange* register_mapped_range(const void* address, std::size_t bytes) {
  std::call_once(install_once, install);
  MappedRange* range = take_free_entry();
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  range->is_damaged.store(false, std::memory_order_relaxed);
  range->end.store(begin + bytes, std::memory_order_release);
  range->begin.store(begin, std::memory_order_release);
  return range;
}

void unregister_mapped_range(MappedRange* range) noexcept {
  range->begin.store(0, std::memory_order_release);
  range->is_taken.store(false, std::memory_order_release);
}

}  // namespace tern
