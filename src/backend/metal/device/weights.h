// Weights in the layouts that the Metal kernels read, and state pools: memory that host and device
// share, filled in place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/metal/device/context.h"
#include "backend/metal/kernels/kernels.h"

namespace tern::metal {

class MetalWeights : public backend::ResidentWeights {
 public:
  // Errors: kUnsupported naming the weight that has no layout or is larger than a buffer;
  // kOutOfMemory with need and have; kInvalidFile for a scale that is not finite; kCancelled.
  [[nodiscard]] static Result<std::shared_ptr<const MetalWeights>> make(
      const program::WeightSet& set, const Context& context, const ProgressFn& progress,
      const CancelToken& cancel);

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  // Several where one would be larger than the device allows.
  [[nodiscard]] const std::vector<MemoryRef>& buffers() const { return buffers_; }
  [[nodiscard]] WeightPlace place(program::WeightId id) const { return places_[id]; }
  [[nodiscard]] std::uint64_t device() const { return device_; }

 private:
  [[nodiscard]] Result<void> allocate(const program::WeightSet& set, const Context& context);

  std::uint64_t bytes_ = 0;
  std::uint64_t device_ = 0;
  std::vector<MemoryRef> buffers_;
  std::vector<WeightPlace> places_;
};

// KV pages at their final size. No Metal kernel reads them yet; programs with states are refused
// when they are planned.
class MetalStates : public backend::StatePool {
 public:
  [[nodiscard]] static Result<std::shared_ptr<MetalStates>> make(
      const std::vector<program::StateDecl>& decls, const backend::PoolSizes& sizes,
      const Context& context);
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] int pages() const override { return pages_; }
  [[nodiscard]] const std::vector<program::StateDecl>& decls() const { return decls_; }

 private:
  std::vector<program::StateDecl> decls_;
  std::uint64_t bytes_ = 0;
  int pages_ = 0;
  std::vector<MemoryRef> memory_;  // one buffer a state
};

}  // namespace tern::metal
