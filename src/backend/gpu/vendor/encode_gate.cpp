// The list of running encodes, and the list of active threads of a device.
#include "backend/gpu/vendor/encode_gate.h"

#include <algorithm>

#include "backend/gpu/vendor/active_threads.h"

namespace tern::gpu {

std::uint64_t EncodeGate::next_generation() {
  const std::lock_guard lock(mutex_);
  return ++last_;
}

void EncodeGate::advance(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  current_ = std::max(current_, generation);
}

bool EncodeGate::has_older(std::uint64_t generation) const {
  for (const Ticket* ticket = first_; ticket != nullptr; ticket = ticket->next_) {
    if (ticket->generation_ < generation) return true;
  }
  return false;
}

void EncodeGate::wait_for_older(std::uint64_t generation) {
  std::unique_lock lock(mutex_);
  left_.wait(lock, [&] { return !has_older(generation); });
}

std::size_t EncodeGate::running() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const Ticket* ticket = first_; ticket != nullptr; ticket = ticket->next_) ++count;
  return count;
}

std::uint64_t EncodeGate::generation() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void EncodeGate::enter(Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  ticket.generation_ = current_;
  ticket.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &ticket;
  first_ = &ticket;
}

void EncodeGate::leave(Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  (ticket.previous_ != nullptr ? ticket.previous_->next_ : first_) = ticket.next_;
  if (ticket.next_ != nullptr) ticket.next_->previous_ = ticket.previous_;
  // Under the lock: a waiter may destroy the gate as soon as it sees the list without this ticket.
  left_.notify_all();
}

bool ActiveThreads::contains_this_thread() const {
  const std::lock_guard lock(mutex_);
  for (const Scope* scope = first_; scope != nullptr; scope = scope->next_) {
    if (scope->id_ == std::this_thread::get_id()) return true;
  }
  return false;
}

void ActiveThreads::enter(Scope& scope) {
  const std::lock_guard lock(mutex_);
  scope.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &scope;
  first_ = &scope;
}

void ActiveThreads::leave(Scope& scope) {
  const std::lock_guard lock(mutex_);
  (scope.previous_ != nullptr ? scope.previous_->next_ : first_) = scope.next_;
  if (scope.next_ != nullptr) scope.next_->previous_ = scope.previous_;
}

}  // namespace tern::gpu
