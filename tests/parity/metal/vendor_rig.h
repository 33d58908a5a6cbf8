// Vendor products on a Metal device for tests: a problem in host memory goes there and comes back.
#pragma once

#include <memory>

#include "backend/gpu/vendor/bridge.h"
#include "backend/vendor_gemm.h"
#include "base/error.h"

namespace tern::metal_tests {

// What one submission did.
struct ProductRun {
  int encoders = 0;  // of ours
  std::uint32_t launches = 0;
};

// Any thread.
class VendorRig {
 public:
  virtual ~VendorRig() = default;
  [[nodiscard]] static std::unique_ptr<VendorRig> open();
  // One command buffer: `times` products of the same problem, with `own` kernels of ours before
  // each and after the last.
  [[nodiscard]] virtual Result<ProductRun> run(const backend::GemmProblem& problem, int times = 1,
                                               int own = 0) = 0;
  [[nodiscard]] virtual gpu::VendorBridge& bridge() = 0;
};

}  // namespace tern::metal_tests
