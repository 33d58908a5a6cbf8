// MPSMatrixMultiplication as the vendor of a device's matrix products.
#pragma once

#include <memory>

#include "backend/gpu/vendor/vendor_api.h"
#include "backend/metal/device/commands.h"
#include "backend/metal/device/pipelines.h"

namespace tern::metal {

// f32 and f16, row-major as they lie. C is D itself; everything else after the sum is one kernel of
// ours. A batch is one call where each matrix stride is a whole number of rows, otherwise a call
// per matrix inside of one encode.
class MpsVendor final : public gpu::VendorApi {
 public:
  // core: of the same device, for the kernels that convert and finish. Errors: kUnsupported where
  // the device has no MPS.
  [[nodiscard]] static Result<std::shared_ptr<MpsVendor>> make(
      std::shared_ptr<Context> context, std::shared_ptr<Pipelines> pipelines);

  [[nodiscard]] std::uint64_t device() const override { return context_->id_number(); }
  [[nodiscard]] const backend::VendorLimits& limits() const override { return limits_; }
  [[nodiscard]] gpu::VendorObjects objects() const override {
    return {.has_kernels = true, .has_descriptors = true, .has_views = true};
  }

  Result<std::unique_ptr<gpu::VendorKernel>> make_kernel(const gpu::GemmKernelKey& key) override;
  Result<std::unique_ptr<gpu::VendorDescriptor>> make_descriptor(
      const gpu::DescriptorKey& key) override;
  Result<std::unique_ptr<gpu::VendorView>> make_view(
      const gpu::ViewKey& key, const backend::AllocationRef& memory,
      const gpu::VendorDescriptor* descriptor) override;
  // The context is a Commands.
  Result<void> encode_product(const gpu::ProductCall& call,
                              backend::EncodeContext& context) override;
  Result<void> encode_conversion(const gpu::ConversionCall& call,
                                 backend::EncodeContext& context) override;
  Result<void> encode_epilogue(const gpu::EpilogueCall& call,
                               backend::EncodeContext& context) override;

 private:
  MpsVendor(std::shared_ptr<Context> context, std::shared_ptr<Pipelines> pipelines);
  [[nodiscard]] Result<void> encode_own(const Launch& launch, const Bases& bases,
                                        backend::EncodeContext& context);

  const std::shared_ptr<Context> context_;
  const std::shared_ptr<Pipelines> pipelines_;
  backend::VendorLimits limits_;
};

}  // namespace tern::metal
