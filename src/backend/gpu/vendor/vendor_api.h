// What a vendor's library offers to the bridge: objects to make, commands to append, and the keys
// that the objects are cached by.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "backend/vendor_gemm.h"
#include "backend/vendor_gemm_limits.h"

namespace tern::gpu {

using backend::AllocationId;
using backend::AllocationRef;

// ---- Keys. Plain structs, compared member by member; a hash only picks a bucket. ----

enum class ScalarClass : std::uint8_t { kZero, kOne, kOther };
[[nodiscard]] constexpr ScalarClass scalar_class(float value) {
  return value == 0.0f   ? ScalarClass::kZero
         : value == 1.0f ? ScalarClass::kOne
                         : ScalarClass::kOther;
}

// Descriptors and chosen algorithm. Strides in elements as the vendor call sees them (converted
// operands are packed); batch and its strides are 1 and 0 for a loop of calls.
struct PlanKey {
  std::uint64_t device = 0;
  std::uint64_t m = 0, n = 0, k = 0;
  Dtype a = Dtype::kF32, b = Dtype::kF32, d = Dtype::kF32;
  Dtype accumulation = Dtype::kF32;
  bool is_a_transposed = false, is_b_transposed = false;
  std::uint64_t a_row_stride = 0, b_row_stride = 0, c_row_stride = 0, d_row_stride = 0;
  std::uint32_t batch = 1;
  std::uint64_t a_batch_stride = 0, b_batch_stride = 0, c_batch_stride = 0, d_batch_stride = 0;
  ScalarClass alpha = ScalarClass::kOne, beta = ScalarClass::kZero;
  bool is_c_apart = false;  // C is read and is not D
  backend::Activation activation =
      backend::Activation::kNone;  // the vendor's share of the epilogue
  bool has_bias = false;
  Dtype bias = Dtype::kF32;
  // log2 of the largest power of two, at most 256, that divides the operand's byte offset. The
  // allocations of a device start at multiples of 256.
  std::uint8_t a_alignment = 8, b_alignment = 8, c_alignment = 8, d_alignment = 8;
  std::uint64_t workspace_limit = 0;
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

// A kernel object that changes while it encodes (MPSMatrixMultiplication). Scalars as their bits,
// so that a NaN equals itself.
struct KernelKey {
  std::uint64_t device = 0;
  std::uint64_t m = 0, n = 0, k = 0;
  bool is_a_transposed = false, is_b_transposed = false;
  std::uint32_t alpha_bits = 0, beta_bits = 0;
  [[nodiscard]] float alpha() const { return std::bit_cast<float>(alpha_bits); }
  [[nodiscard]] float beta() const { return std::bit_cast<float>(beta_bits); }
  friend bool operator==(const KernelKey&, const KernelKey&) = default;
};

struct DescriptorKey {
  std::uint64_t device = 0;
  std::uint64_t rows = 0, cols = 0, row_stride = 0;
  std::uint32_t batch = 1;
  std::uint64_t batch_stride = 0;
  Dtype dtype = Dtype::kF32;
  friend bool operator==(const DescriptorKey&, const DescriptorKey&) = default;
};

struct ViewKey {
  AllocationId allocation = 0;
  std::uint64_t offset = 0;
  DescriptorKey matrix{};
  friend bool operator==(const ViewKey&, const ViewKey&) = default;
};

[[nodiscard]] std::uint64_t hash_of(const PlanKey& key);
[[nodiscard]] std::uint64_t hash_of(const KernelKey& key);
[[nodiscard]] std::uint64_t hash_of(const DescriptorKey& key);
[[nodiscard]] std::uint64_t hash_of(const ViewKey& key);

// ---- Objects. A vendor derives its own; the destructor releases, and may run on any thread. ----

struct VendorPlan {
  virtual ~VendorPlan() = default;
  // Workspace beyond what conversions and staging need.
  std::uint64_t workspace_bytes = 0;
};
struct VendorKernel {
  virtual ~VendorKernel() = default;
};
struct VendorDescriptor {
  virtual ~VendorDescriptor() = default;
};
// Holds its allocation alive.
struct VendorView {
  virtual ~VendorView() = default;
};

// ---- Commands ----

// A matrix, or a batch of them, as a command sees it. view and descriptor are null for a vendor
// that has none (VendorObjects).
struct MatrixRef {
  backend::Operand operand{};
  std::shared_ptr<const VendorDescriptor> descriptor = nullptr;
  std::shared_ptr<const VendorView> view = nullptr;
};

// D = activation(alpha op(A) op(B) + beta C + bias), where C, bias and activation are there only
// when VendorCall gave them to the vendor. c is d itself when in place.
struct ProductCall {
  std::string_view op{};
  std::uint64_t m = 0, n = 0, k = 0;
  std::uint32_t batch = 1;
  float alpha = 1.0f;
  float beta = 0.0f;  // 0: c is not read and may be empty
  MatrixRef a{}, b{}, c{}, d{};
  std::optional<backend::Bias> bias = std::nullopt;
  backend::Activation activation = backend::Activation::kNone;
  const VendorPlan* plan = nullptr;
  VendorKernel* kernel = nullptr;     // this call's alone
  AllocationRef workspace = nullptr;  // plan->workspace_bytes from workspace_offset on
  std::uint64_t workspace_offset = 0;
};

// to[i] = from[i] in another dtype: a kernel of ours. Same rows, cols and batch; own strides.
struct ConversionCall {
  std::string_view op{};
  backend::Operand from{}, to{};
  std::uint32_t batch = 1;
};

// D = activation(source + beta C + bias), in one pass of a kernel of ours; without a source the
// first term is 0. source is D itself (f32, in place) or staged f32 sums.
struct EpilogueCall {
  std::string_view op{};
  std::uint64_t m = 0, n = 0;
  std::uint32_t batch = 1;
  std::optional<backend::Operand> source = std::nullopt;
  float beta = 0.0f;  // 0: c is not read
  backend::Operand c{}, d{};
  std::optional<backend::Bias> bias = std::nullopt;
  backend::Activation activation = backend::Activation::kNone;
};

// Which kinds of object a vendor has; the bridge makes no others.
struct VendorObjects {
  bool has_plans = false;        // cuBLASLt: matmul descriptor, layouts, algorithm
  bool has_kernels = false;      // MPS: MPSMatrixMultiplication
  bool has_descriptors = false;  // MPS: MPSMatrixDescriptor
  bool has_views = false;        // MPS: MPSMatrix
};

// A vendor's library on one device. Every function may be called from any thread at any time, never
// with a lock of the bridge held. An exception, an error, or a null pointer is a failed creation:
// nothing is cached, and the next call tries again. Everything that a function autoreleases is
// released in a pool of its own (gpu-layer C.3).
class VendorApi {
 public:
  virtual ~VendorApi() = default;
  [[nodiscard]] virtual std::uint64_t device() const = 0;
  [[nodiscard]] virtual const backend::VendorLimits& limits() const = 0;
  [[nodiscard]] virtual VendorObjects objects() const = 0;
  // Largest workspace that a plan's algorithm may ask for, in bytes.
  [[nodiscard]] virtual std::uint64_t workspace_limit() const { return 0; }

  virtual Result<std::unique_ptr<VendorPlan>> make_plan(const PlanKey& key);
  virtual Result<std::unique_ptr<VendorKernel>> make_kernel(const KernelKey& key);
  virtual Result<std::unique_ptr<VendorDescriptor>> make_descriptor(const DescriptorKey& key);
  virtual Result<std::unique_ptr<VendorView>> make_view(const ViewKey& key,
                                                        const AllocationRef& memory,
                                                        const VendorDescriptor* descriptor);

  // A product of one tile at the operand's very offset against its known answer, in memory of the
  // probe's own making. Called for operands beyond limits().unproven_bytes, once per offset.
  virtual Result<bool> probe(const backend::Operand& operand);

  virtual Result<void> encode_product(const ProductCall& call, backend::EncodeContext& context) = 0;
  virtual Result<void> encode_conversion(const ConversionCall& call,
                                         backend::EncodeContext& context) = 0;
  virtual Result<void> encode_epilogue(const EpilogueCall& call,
                                       backend::EncodeContext& context) = 0;
};

}  // namespace tern::gpu
