// cuBLASLt as the vendor of a device's matrix products.
#pragma once

#include <memory>

#include "backend/cuda/core/modules.h"
#include "backend/cuda/driver/cublaslt_api.h"
#include "backend/gpu/vendor/vendor_api.h"

namespace tern::cuda {

// Row-major products as column-major ones of the swapped operands: D^T = B^T A^T in the same bytes.
// Sums are f32 whatever the operands are; the parts of a split product are added in f32 and in a
// fixed order, or not at all. f32 operands are never rounded to a shorter type. The algorithm is
// asked for once per plan.
class CublasLtVendor : public gpu::VendorApi {
 public:
  // modules: of the same device, for the kernels that convert and finish. Errors: kDevice.
  [[nodiscard]] static Result<std::shared_ptr<CublasLtVendor>> make(
      const CublasLtApi& api, std::shared_ptr<Context> context, std::shared_ptr<Modules> modules);
  ~CublasLtVendor() override;

  [[nodiscard]] std::uint64_t device() const override { return context_->id(); }
  [[nodiscard]] const backend::VendorLimits& limits() const override { return limits_; }
  [[nodiscard]] gpu::VendorObjects objects() const override { return {.has_plans = true}; }
  [[nodiscard]] std::uint64_t workspace_limit() const override { return workspace_limit_; }

  Result<std::unique_ptr<gpu::VendorPlan>> make_plan(const gpu::PlanKey& key) override;
  // The context is a CudaEncodeContext.
  Result<void> encode_product(const gpu::ProductCall& call,
                              backend::EncodeContext& context) override;
  Result<void> encode_conversion(const gpu::ConversionCall& call,
                                 backend::EncodeContext& context) override;
  Result<void> encode_epilogue(const gpu::EpilogueCall& call,
                               backend::EncodeContext& context) override;

 private:
  CublasLtVendor(const CublasLtApi& api, std::shared_ptr<Context> context,
                 std::shared_ptr<Modules> modules, LtHandle* handle, int cores,
                 std::uint64_t workspace_limit);
  [[nodiscard]] Result<void> check(int status, const char* call) const;

  const CublasLtApi api_;
  const std::shared_ptr<Context> context_;
  const std::shared_ptr<Modules> modules_;
  LtHandle* const handle_;
  const int cores_;
  const std::uint64_t workspace_limit_;
  backend::VendorLimits limits_;
};

}  // namespace tern::cuda
