// A driver for tests: device memory is host memory, launches are recorded and may run a function of
// the test, and any call can be told to fail.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/driver/driver_api.h"

namespace tern::cuda {

// The table that api() gives works while the fake lives; there is one at a time, because the
// driver's functions carry no object.
class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  [[nodiscard]] std::shared_ptr<const DriverApi> api() const { return api_; }

  struct Launched {
    std::string entry;
    LaunchConfig config;
    bool is_early = false;
    Address weights = 0, arena = 0, block = 0;
    std::array<std::byte, 128> params{};
  };

  // What the machine is like.
  int version = 13000;
  int devices = 1;
  Status init_status = kSuccess;
  std::size_t memory_bytes = std::size_t{1} << 30;
  std::map<int, int> attributes = {{kMultiprocessors, 132}, {kCapabilityMajor, 9},
                                   {kCapabilityMinor, 0},   {kMemoryClockKilohertz, 3201000},
                                   {kMemoryBusBits, 6144},  {kClockKilohertz, 1980000},
                                   {kL2Bytes, 62914560},    {kSharedBytesPerBlock, 232448}};
  int threads_of_functions = 1024;
  std::array<std::uint64_t, 2> params_mark{};  // not zero: what every module says instead
  bool never_passes = false;                   // events stay pending
  // Runs inside of a launch (also of a replayed one), with the fake's memory in place.
  std::function<void(const Launched&)> kernel;

  // The nth call (from 1) of a symbol, counted from now, returns this status.
  void fail(const std::string& symbol, int nth, Status status);
  [[nodiscard]] int calls(const std::string& symbol) const;
  [[nodiscard]] std::vector<Launched> launched() const;  // in order, replays too
  [[nodiscard]] std::size_t live_objects() const;        // memory, streams, events, graphs, modules
  [[nodiscard]] std::size_t allocated_bytes() const;
  [[nodiscard]] int retained_contexts() const;

 private:
  friend struct FakeCalls;
  struct Captured {
    std::vector<Launched> launches;
  };

  Status enter(const char* symbol);
  void run(const Launched& launch);
  template <class Handle>
  Handle* make_object() {
    objects_.push_back(std::make_unique<char>());
    ++live_;
    return reinterpret_cast<Handle*>(objects_.back().get());
  }

  mutable std::recursive_mutex mutex_;
  std::shared_ptr<const DriverApi> api_;
  std::map<std::string, int> calls_;
  std::map<std::string, std::vector<std::pair<int, Status>>> failures_;
  std::map<Address, std::vector<std::byte>> memory_;
  std::size_t used_ = 0;
  std::vector<std::unique_ptr<char>> objects_;  // identities of handles, never reused
  std::size_t live_ = 0;
  int contexts_ = 0;
  std::map<void*, std::string> functions_;
  std::map<void*, Captured> graphs_;
  bool is_capturing_ = false;
  Captured capture_;
  std::vector<Launched> launched_;
  std::map<std::string, std::unique_ptr<std::array<std::uint64_t, 2>>> marks_;
};

}  // namespace tern::cuda
