// The bus-error handler for mapped files: the one signal handler of the library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tern {

// One registered range of addresses. Entries are reused but never freed, because a handler may be
// looking at them.
struct MappedRange {
  std::atomic<std::uintptr_t> begin{0};  // 0: not in use, for the handler
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> is_damaged{false};
  std::atomic<bool> is_taken{false};
  MappedRange* next = nullptr;  // constant once the entry is in the list
};

// Installs the handler when it is the first, and registers [address, address + bytes), a whole
// mapping. A bus error inside it puts zero pages there and sets is_damaged; one outside goes to the
// handler that was installed before.
[[nodiscard]] MappedRange* register_mapped_range(const void* address, std::size_t bytes);
// Before the range is unmapped.
void unregister_mapped_range(MappedRange* range) noexcept;

}  // namespace tern
