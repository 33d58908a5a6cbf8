// CPU executor of kernel modules: loads them, and runs dispatches with one fiber per GPU thread.
//
// Inside a threadgroup each SIMD-group of 32 runs until all of its lanes wait at the same
// collective (operation and source line), then goes on with the mask of lanes that take part. A
// threadgroup barrier opens when every live thread waits at it. Everything else is plain code.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "options.h"
#include "swm_abi.h"

namespace swm {

inline constexpr unsigned kMaxThreads = 1024;          // of a threadgroup
inline constexpr std::size_t kMaxGroupMemory = 32768;  // bytes of a threadgroup

// A shared object of one or more kernel modules. Unloaded with the last reference.
class Module {
 public:
  // Empty with an error text when the file is no module of this emulator.
  static std::shared_ptr<const Module> load(const std::string& path, std::string& error);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  [[nodiscard]] const std::vector<const swm_kernel*>& kernels() const { return kernels_; }
  [[nodiscard]] const swm_kernel* find(const std::string& name) const;  // nullptr: none

 private:
  Module(void* handle, std::vector<const swm_kernel*> kernels)
      : handle_(handle), kernels_(std::move(kernels)) {}
  [[maybe_unused]] void* handle_;
  std::vector<const swm_kernel*> kernels_;
};

// Values of function constants, by row of the table of the kernel's module. Empty: not set.
using ConstantValues = std::vector<std::vector<char>>;

struct Dispatch {
  std::shared_ptr<const Module> module;  // keeps the kernel
  const swm_kernel* kernel = nullptr;
  const ConstantValues* constants = nullptr;
  swm_args args{};
  swm_dim grid{};   // threads; need not be a multiple of the threadgroup
  swm_dim group{};  // threads
};

struct Counts {
  std::uint64_t threads = 0, groups = 0, switches = 0;
};

// Runs one dispatch to its end. False: `error` says why (on a GPU it would have been a fault, a
// hang or undefined results). Any number of threads may call it.
bool run(const Dispatch& dispatch, const Options& options, std::string& error,
         Counts* counts = nullptr);

}  // namespace swm
