// Counts the objects that are alive, by class. Relaxed atomics only: it must not order anything
// for the thread sanitizer.
#pragma once

#import <Foundation/Foundation.h>

#include <atomic>
#include <cstdint>

namespace swm {

class LiveObjects {
 public:
  void add(const void* of, int change) {
    for (Row& row : rows_) {
      const void* expected = nullptr;
      const void* found = row.of.load(std::memory_order_relaxed);
      if (!found && row.of.compare_exchange_strong(expected, of, std::memory_order_relaxed))
        found = of;
      if (found == of || expected == of) {
        row.count.fetch_add(change, std::memory_order_relaxed);
        return;
      }
    }
  }
  [[nodiscard]] std::uint64_t count(const void* of) const {  // a class; nullptr: all
    std::int64_t sum = 0;
    for (const Row& row : rows_) {
      const void* found = row.of.load(std::memory_order_relaxed);
      if (found && (!of || found == of)) sum += row.count.load(std::memory_order_relaxed);
    }
    return static_cast<std::uint64_t>(sum);
  }

 private:
  struct Row {
    std::atomic<const void*> of{nullptr};
    std::atomic<std::int64_t> count{0};
  };
  Row rows_[64];
};

LiveObjects& live_objects();

}  // namespace swm
