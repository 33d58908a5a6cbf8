// Where a vendor product's commands go on CUDA: a stream, and the workspace of that stream.
#pragma once

#include <memory>
#include <vector>

#include "backend/cuda/core/modules.h"
#include "backend/vendor_gemm.h"

namespace tern::cuda {

class CudaEncodeContext : public backend::EncodeContext {
 public:
  // workspace may be empty when no plan needs one. Both outlive the context.
  CudaEncodeContext(const Stream& stream, std::shared_ptr<const DeviceMemory> workspace)
      : stream_(stream), workspace_(std::move(workspace)) {}

  [[nodiscard]] const Stream& stream() const { return stream_; }
  Result<backend::AllocationRef> workspace(std::uint64_t bytes) override;
  void retain(std::shared_ptr<const void> object) override {
    retained_.push_back(std::move(object));
  }
  Result<void> before_vendor_call() override { return {}; }
  // Once the stream has passed what was encoded so far.
  void release() { retained_.clear(); }

 private:
  const Stream& stream_;
  std::shared_ptr<const DeviceMemory> workspace_;
  std::vector<std::shared_ptr<const void>> retained_;
};

}  // namespace tern::cuda
