// From an accepted problem to what the vendor call sees: converted and staged operands in the
// workspace, one matrix of a loop, and the keys of the caches. Pure functions.
#pragma once

#include <cstdint>

#include "backend/gpu/vendor/vendor_api.h"
#include "backend/vendor_gemm.h"
#include "backend/vendor_gemm_limits.h"

namespace tern::gpu {

// The problem as the vendor call sees it. Operands in the workspace have no memory yet; it is
// filled in when an encode knows the workspace.
struct Lowered {
  backend::Operand a{}, b{}, c{}, d{};
  bool is_c_in_place = false;
  std::uint32_t batch = 1;  // of one vendor call
  std::uint64_t bytes = 0;  // of workspace for conversions and staging
};

// Errors: kInvalidArgument when the workspace does not fit 64 bits.
[[nodiscard]] Result<Lowered> lower(const backend::GemmProblem& problem,
                                    const backend::VendorCall& call,
                                    const backend::VendorLimits& limits);

[[nodiscard]] PlanKey plan_key(const backend::GemmProblem& problem, const backend::VendorCall& call,
                               const Lowered& lowered, const VendorApi& api);
[[nodiscard]] KernelKey kernel_key(const backend::GemmProblem& problem,
                                   const backend::VendorCall& call, std::uint64_t device);
[[nodiscard]] DescriptorKey descriptor_key(const backend::Operand& operand, std::uint32_t batch,
                                           std::uint64_t device);

// Matrix `index` of the batch, as an operand of its own.
[[nodiscard]] backend::Operand matrix_of(backend::Operand operand, std::uint32_t index);

}  // namespace tern::gpu
