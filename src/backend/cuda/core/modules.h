// Loads the kernels of an executable from what is embedded, and launches them.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/core/stream.h"
#include "backend/cuda/kernels/kernels.h"

namespace tern::cuda {

class CudaStore;

// Where a launch's three kinds of memory start.
struct Bases {
  Address weights = 0;
  Address arena = 0;
  Address block = 0;  // the batch block
};

// The kernels of one device. Loaded once, on first request, never inside of a step. Thread safety:
// any thread.
class Modules {
 public:
  // architecture: "sm_90". With a store, kernels come through its tiers and its self-tests; without
  // one, embedded code is loaded as it is (tools that must not compile).
  Modules(std::shared_ptr<Context> context, std::string architecture,
          std::shared_ptr<CudaStore> store = nullptr);
  ~Modules();
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  // The kernel's function, checked: it is there, its parameter block is the host's, and its limits
  // hold. Errors: kUnsupported, naming kernel and architecture; kDevice. A failure is remembered.
  [[nodiscard]] Result<FunctionHandle*> function(KernelId id);

 private:
  [[nodiscard]] Result<ModuleHandle*> module(std::string_view source);
  [[nodiscard]] Result<FunctionHandle*> load(const KernelInfo& kernel);
  [[nodiscard]] Result<FunctionHandle*> resolve(const KernelInfo& kernel);
  [[nodiscard]] Result<void> check_params(ModuleHandle* module, const KernelInfo& kernel);

  const std::shared_ptr<Context> context_;
  const std::string architecture_;
  const std::shared_ptr<CudaStore> store_;
  std::mutex mutex_;
  std::map<std::string, Result<ModuleHandle*>, std::less<>> modules_;
  std::map<KernelId, Result<FunctionHandle*>> functions_;
  std::vector<std::shared_ptr<const void>> pipelines_;  // what the store's functions stand on
};

// Appends one launch. is_early: it may start before its predecessor has ended (the kernels wait for
// it themselves before they touch what it writes).
[[nodiscard]] Result<void> launch(const Stream& stream, FunctionHandle* function,
                                  const Launch& launch, const Bases& bases, bool is_early = false);

}  // namespace tern::cuda
