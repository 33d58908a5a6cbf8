// Weights in the layouts that the CUDA kernels read: one copy, uploaded through a bounded ring of
// pinned memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/core/stream.h"

namespace tern::cuda {

// Bytes and name of one weight's layout: a pure function of its declaration. An empty name: there
// is no layout, because no kernel reads it.
struct LayoutEstimate {
  std::uint64_t bytes = 0;
  std::string name;  // "tiles16 q1_g128", "vector f32"
};
[[nodiscard]] LayoutEstimate estimate_layout(const program::WeightDecl& decl);

// Pinned memory of an upload: at most this much, and pieces of a ring of four.
inline constexpr std::uint64_t kUploadBytes = std::uint64_t{64} << 20;

class CudaWeights : public backend::ResidentWeights {
 public:
  // Errors: kUnsupported naming the weight that has no layout; kOutOfMemory with need and have;
  // kInvalidFile for a scale that is not finite; kCancelled; kDevice.
  [[nodiscard]] static Result<std::shared_ptr<const CudaWeights>> make(
      const program::WeightSet& set, const std::shared_ptr<Context>& context,
      const ProgressFn& progress, const CancelToken& cancel,
      std::uint64_t ring_bytes = kUploadBytes);

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] Address address() const { return memory_ ? memory_->address() : 0; }
  [[nodiscard]] const std::shared_ptr<const DeviceMemory>& memory() const { return memory_; }
  // Bytes from address() on.
  [[nodiscard]] std::uint64_t offset(program::WeightId id) const { return offsets_[id]; }

 private:
  std::uint64_t bytes_ = 0;
  std::shared_ptr<const DeviceMemory> memory_;
  std::vector<std::uint64_t> offsets_;
};

// KV pages at their final size. No CUDA kernel reads them yet; programs with states are refused
// when they are planned.
class CudaStates : public backend::StatePool {
 public:
  [[nodiscard]] static Result<std::shared_ptr<CudaStates>> make(
      const std::vector<program::StateDecl>& decls, const backend::PoolSizes& sizes,
      const std::shared_ptr<Context>& context);
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] int pages() const override { return pages_; }
  [[nodiscard]] const std::vector<program::StateDecl>& decls() const { return decls_; }

 private:
  std::vector<program::StateDecl> decls_;
  std::uint64_t bytes_ = 0;
  int pages_ = 0;
  std::shared_ptr<const DeviceMemory> memory_;
};

}  // namespace tern::cuda
