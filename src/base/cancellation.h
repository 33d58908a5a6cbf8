// A token by which one thread asks another to stop.
#pragma once

#include <atomic>
#include <memory>

#include "base/error.h"

namespace tern {

// Copies share one flag. Any thread may call anything at any time. Looked at between steps, tiles
// and batches.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}

  [[nodiscard]] bool requested() const { return flag_->load(std::memory_order_relaxed); }
  void request() const { flag_->store(true, std::memory_order_relaxed); }
  // Ready for the next request; only while nothing works under the token.
  void reset() const { flag_->store(false, std::memory_order_relaxed); }

  // For a signal handler, which may only store(true) into it. Lives as long as any copy of the
  // token.
  [[nodiscard]] std::atomic<bool>* raw() const { return flag_.get(); }

  // The error of work that has been asked to stop.
  [[nodiscard]] Result<void> check() const {
    if (requested()) return Error(ErrorCode::kCancelled, "stopped on request");
    return {};
  }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace tern
