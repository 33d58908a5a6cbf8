// Which threads of a device are inside an encode or a completion handler just now: those that must
// not wait for other encodes.
#pragma once

#include <mutex>
#include <thread>
#include <vector>

namespace tern::gpu {

// One per device, shared by its bridges. An encode may wait for the device, the device for a
// completion handler, so a handler that waits for an encode would close a circle; the same holds
// for two threads that drop each other's executable from inside an encode.
class ActiveThreads {
 public:
  // The calling thread is active while a Scope lives. Every completion handler opens one first.
  class Scope {
   public:
    explicit Scope(ActiveThreads& threads) : threads_(threads) { threads_.enter(); }
    ~Scope() { threads_.leave(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ActiveThreads& threads_;
  };

  [[nodiscard]] bool contains_this_thread() const;

 private:
  void enter();
  void leave();

  mutable std::mutex mutex_;
  std::vector<std::thread::id> ids_;  // a thread is in here once per scope that it is in
};

}  // namespace tern::gpu
