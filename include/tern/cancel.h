// Cancellation by a token: cheap to copy, safe to trip from any thread and from a signal handler.
#pragma once

#include <atomic>
#include <memory>

namespace tern {

// A default-constructed token can never be tripped. One token belongs to one request.
class CancelToken {
 public:
  CancelToken() = default;
  [[nodiscard]] static CancelToken make() {
    CancelToken token;
    token.flag_ = std::make_shared<std::atomic<bool>>(false);
    return token;
  }
  void request() const noexcept {
    if (flag_) flag_->store(true, std::memory_order_relaxed);
  }
  [[nodiscard]] bool requested() const noexcept {
    return flag_ && flag_->load(std::memory_order_relaxed);
  }
  // For a signal handler: lives as long as the token.
  [[nodiscard]] std::atomic<bool>* flag() const noexcept { return flag_.get(); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace tern
