// One computation per key inside the process: the first caller works, the others wait for its
// result.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace tern::cache {

// Threads: any may call any member. A computation may not ask for its own key.
template <class Value>
class SingleFlight {
 public:
  // compute() gives {value, keep}. A kept value answers every later call; one that is not kept
  // answers only those who wait now. What compute throws reaches its caller, and one of the
  // waiting callers computes afresh.
  template <class Compute>
  std::shared_ptr<const Value> run(const std::string& key, Compute&& compute) {
    std::shared_ptr<Flight> flight;
    for (;;) {
      std::unique_lock lock(mutex_);
      std::shared_ptr<Flight>& slot = flights_[key];
      if (!slot) {
        slot = std::make_shared<Flight>();
        flight = slot;
        break;
      }
      flight = slot;
      landed_.wait(lock, [&flight] { return flight->is_done; });
      if (flight->value) return flight->value;
    }
    Guard guard{*this, key, *flight};
    std::pair<Value, bool> made = compute();
    guard.land(std::make_shared<const Value>(std::move(made.first)), made.second);
    return flight->value;
  }

  void forget(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto at = flights_.find(key);
    if (at != flights_.end() && at->second->is_done) flights_.erase(at);
  }

 private:
  struct Flight {
    bool is_done = false;
    std::shared_ptr<const Value> value;  // empty: the computation threw
  };
  struct Guard {
    SingleFlight& owner;
    const std::string& key;
    Flight& flight;

    void land(std::shared_ptr<const Value> value, bool keep) {
      const std::lock_guard lock(owner.mutex_);
      flight.value = std::move(value);
      flight.is_done = true;
      if (!keep) owner.flights_.erase(key);
      owner.landed_.notify_all();
    }
    ~Guard() {
      if (!flight.is_done) land(nullptr, false);
    }
  };

  std::mutex mutex_;
  std::condition_variable landed_;
  std::map<std::string, std::shared_ptr<Flight>> flights_;
};

}  // namespace tern::cache
