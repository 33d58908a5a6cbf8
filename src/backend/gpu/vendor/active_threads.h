// Which threads of a device are inside an encode or a completion handler just now: those that must
// not wait for other encodes.
#pragma once

#include <mutex>
#include <thread>

namespace tern::gpu {

// One per device, shared by its bridges. An encode may wait for the device, the device for a
// completion handler, so a handler that waits for an encode would close a circle; the same holds
// for two threads that drop each other's executable from inside an encode.
class ActiveThreads {
 public:
  // The calling thread is active while a Scope lives; scopes nest. Every completion handler opens
  // one first. Lives on its thread's stack.
  class Scope {
   public:
    explicit Scope(ActiveThreads& threads) : threads_(threads) { threads_.enter(*this); }
    ~Scope() { threads_.leave(*this); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class ActiveThreads;
    ActiveThreads& threads_;
    const std::thread::id id_ = std::this_thread::get_id();
    Scope* next_ = nullptr;
    Scope* previous_ = nullptr;
  };

  [[nodiscard]] bool contains_this_thread() const;

 private:
  void enter(Scope& scope);
  void leave(Scope& scope);

  mutable std::mutex mutex_;
  Scope* first_ = nullptr;
};

}  // namespace tern::gpu
