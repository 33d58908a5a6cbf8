// Hashes of the keys, and what a vendor answers for objects that it does not have.
#include "backend/gpu/vendor/vendor_api.h"

#include "base/error.h"

namespace tern::gpu {

namespace {

// Fields one after the other (splitmix64's finaliser). Only the speed of a look-up depends on it.
class Hasher {
 public:
  template <class... Fields>
  explicit Hasher(const Fields&... fields) {
    (add(static_cast<std::uint64_t>(fields)), ...);
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  void add(std::uint64_t field) {
    std::uint64_t x = state_ + 0x9e3779b97f4a7c15u + field;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    state_ = x ^ (x >> 31);
  }
  std::uint64_t state_ = 0;
};

Error lacks(std::string_view vendor, std::string_view object) {
  return fail(ErrorCode::kInternal, "{} has no {}, so the bridge must not ask for one", vendor,
              object);
}

}  // namespace

std::uint64_t hash_of(const PlanKey& key) {
  return Hasher(key.m, key.n, key.k, key.a, key.b, key.d, key.is_a_transposed, key.is_b_transposed,
                key.a_row_stride, key.b_row_stride, key.d_row_stride, key.batch, key.a_batch_stride,
                key.b_batch_stride, key.alpha, key.beta, key.activation, key.has_bias,
                key.a_alignment, key.b_alignment, key.d_alignment)
      .value();
}

std::uint64_t hash_of(const KernelKey& key) {
  return Hasher(key.m, key.n, key.k, key.is_a_transposed, key.is_b_transposed, key.alpha_bits,
                key.beta_bits)
      .value();
}

std::uint64_t hash_of(const DescriptorKey& key) {
  return Hasher(key.rows, key.cols, key.row_stride, key.batch, key.batch_stride, key.dtype).value();
}

std::uint64_t hash_of(const ViewKey& key) {
  return Hasher(key.allocation, key.offset, hash_of(key.matrix)).value();
}

Result<std::unique_ptr<VendorPlan>> VendorApi::make_plan(const PlanKey&) {
  return lacks(limits().name, "plans");
}

Result<std::unique_ptr<VendorKernel>> VendorApi::make_kernel(const KernelKey&) {
  return lacks(limits().name, "kernel objects");
}

Result<std::unique_ptr<VendorDescriptor>> VendorApi::make_descriptor(const DescriptorKey&) {
  return lacks(limits().name, "descriptors");
}

Result<std::unique_ptr<VendorView>> VendorApi::make_view(const ViewKey&, const AllocationRef&,
                                                         const VendorDescriptor*) {
  return lacks(limits().name, "views");
}

Result<bool> VendorApi::probe(const backend::Operand&) { return false; }

}  // namespace tern::gpu
