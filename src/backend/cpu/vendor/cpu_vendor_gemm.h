// The vendor bridge of the CPU: OpenBLAS in our own partition over the thread pool, or plain f32
// code.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/cpu/vendor/openblas_library.h"
#include "backend/vendor_gemm.h"
#include "backend/vendor_gemm_limits.h"
#include "base/aligned_buffer.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"

namespace tern::cpu {

// f32 x f32 -> f32 and everything that widens to it; no alignment, no bound on offsets.
[[nodiscard]] const backend::VendorLimits& openblas_limits();
[[nodiscard]] const backend::VendorLimits& plain_limits();  // the same under the name "plain"

// Host memory for an encode. A CPU has computed when encode returns, so nothing is kept alive.
class CpuEncodeContext final : public backend::EncodeContext {
 public:
  // Errors: kOutOfMemory. `bytes`: the largest workspace_bytes of the plans that it serves.
  [[nodiscard]] static Result<std::unique_ptr<CpuEncodeContext>> make(std::uint64_t device,
                                                                      std::uint64_t bytes);
  Result<backend::AllocationRef> workspace(std::uint64_t bytes) override;
  void retain(std::shared_ptr<const void>) override {}
  Result<void> before_vendor_call() override { return {}; }

 private:
  CpuEncodeContext(std::uint64_t device, std::shared_ptr<AlignedBuffer> buffer);
  const backend::AllocationRef memory_;
};

// D is cut into tiles that depend on the shape alone, never on the number of threads, so that a
// result does not either. One section of the pool computes them: a thread widens the slices of A
// and B that are not f32 into its part of the workspace (at most 2,048 of k at a time), calls the
// library for its tile, and passes over the tile once for C, bias, activation and rounding.
// There is nothing to cache; reset() does nothing. The operands' memory are HostAllocations of
// `device`. encode() runs a section of the pool, so it is not called from inside one.
//
// `library` null: plain f32 code, called "plain".
[[nodiscard]] std::unique_ptr<backend::VendorGemm> make_cpu_vendor_gemm(
    std::shared_ptr<const OpenblasLibrary> library, ThreadPool& pool, std::uint64_t device,
    CpuFeatures features = cpu_features());

}  // namespace tern::cpu
