// What one rendering may use: steps, and bytes that are alive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "text/chat_template/fault.h"
#include "text/chat_template/limits.h"

namespace tern::text::jinja {

// Belongs to one rendering and one thread; outlives every value that the rendering makes.
class Budget {
 public:
  explicit Budget(std::uint64_t max_steps = kMaxSteps) : max_steps_(max_steps) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  void step() { work(kWorkPerStep); }
  // Bytes that are copied or compared by one operation which is no evaluation of its own.
  void bytes(std::size_t count) { work(count * kWorkPerByte + kWorkPerPiece); }
  // Bytes that are searched or scanned one by one, and code points that are looked at.
  void search(std::size_t count) { work(count * kWorkPerSearchedByte + kWorkPerPiece); }
  void characters(std::size_t count) { work(count * kWorkPerCharacter + kWorkPerPiece); }
  // The same for items of a list.
  void items(std::size_t count) { work(count * kWorkPerItem + kWorkPerPiece); }

  void hold(std::size_t count) {
    if (count > kMaxLiveBytes || live_ > kMaxLiveBytes - count) {
      raise(FaultKind::kLimit, "the template holds more than {} MiB of values",
            kMaxLiveBytes >> 20);
    }
    live_ += count;
    if (live_ > most_live_) most_live_ = live_;
  }
  void release(std::size_t count) noexcept { live_ -= count; }

  [[nodiscard]] std::uint64_t steps() const { return work_ / kWorkPerStep; }
  [[nodiscard]] std::size_t live() const { return live_; }
  [[nodiscard]] std::size_t most_live() const { return most_live_; }

 private:
  void work(std::uint64_t units) {
    work_ += units;
    if (work_ > max_steps_ * kWorkPerStep) {
      raise(FaultKind::kLimit, "the template took more than {} steps", max_steps_);
    }
  }

  std::uint64_t max_steps_;
  std::uint64_t work_ = 0;  // below 2^33: no operation is larger than what fits in memory
  std::size_t live_ = 0;
  std::size_t most_live_ = 0;
};

// Bytes that are alive while it stands.
class Held {
 public:
  Held(Budget& budget, std::size_t count) : budget_(budget), count_(count) { budget.hold(count); }
  ~Held() { budget_.release(count_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Budget& budget_;
  std::size_t count_;
};

}  // namespace tern::text::jinja
