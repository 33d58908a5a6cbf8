// Which encodes of one executable are running, and the wait of an invalidation for those that
// started before it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tern::gpu {

// Encodes never wait here. advance() moves the generation on, so that later encodes count as new,
// and wait_for_older() waits for the others alone: a stream of encodes cannot starve it.
class EncodeGate {
 public:
  // One running encode; lives on its thread's stack.
  class Ticket {
   public:
    explicit Ticket(EncodeGate& gate) : gate_(gate) { gate_.enter(*this); }
    ~Ticket() { gate_.leave(*this); }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

   private:
    friend class EncodeGate;
    EncodeGate& gate_;
    std::uint64_t generation_ = 0;
    Ticket* next_ = nullptr;
    Ticket* previous_ = nullptr;
  };

  // A number above all that were given out. The caller empties its caches for it, then advances.
  [[nodiscard]] std::uint64_t next_generation();
  // Encodes that enter from here on belong to `generation` or a later one.
  void advance(std::uint64_t generation);
  // Returns when no encode of a generation below `generation` runs.
  void wait_for_older(std::uint64_t generation);

  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] std::uint64_t generation() const;

 private:
  void enter(Ticket& ticket);
  void leave(Ticket& ticket);
  [[nodiscard]] bool has_older(std::uint64_t generation) const;

  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::uint64_t last_ = 0;     // given out by next_generation
  std::uint64_t current_ = 0;  // of the encodes that enter now
  Ticket* first_ = nullptr;
};

}  // namespace tern::gpu
