// Layout of the workspace, and the keys of the caches.
#include "backend/gpu/vendor/lowering.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/error.h"

namespace tern::gpu {

namespace {

using backend::GemmProblem;
using backend::Operand;
using backend::VendorCall;
using backend::VendorLimits;

// Operands in the workspace start at multiples of this.
constexpr std::uint64_t kWorkspaceAlignment = 256;

// Reserves room for `source` as packed matrices of `dtype` behind `bytes`. Nothing: 64 bits are not
// enough.
std::optional<Operand> place(const Operand& source, Dtype dtype, std::uint32_t batch,
                             const VendorLimits& limits, std::uint64_t& bytes) {
  const std::uint64_t element = size_of(dtype);
  const std::uint64_t alignment =
      std::max<std::uint64_t>({limits.row_alignment, limits.batch_alignment, 16});
  const auto row = checked_mul(source.cols, element);
  if (!row) return std::nullopt;
  const auto padded_row = checked_align(*row, std::bit_ceil(alignment));
  if (!padded_row) return std::nullopt;
  const auto matrix = checked_mul(*padded_row, source.rows);
  if (!matrix) return std::nullopt;
  const bool is_one = batch == 1 || source.batch_stride == 0;
  const auto all = checked_mul(*matrix, is_one ? 1 : batch);
  const auto end = all ? checked_add(*all, bytes) : std::nullopt;
  const auto padded_end = end ? checked_align(*end, kWorkspaceAlignment) : std::nullopt;
  if (!padded_end) return std::nullopt;
  Operand result = source;
  result.memory = nullptr;
  result.offset = bytes;
  result.dtype = dtype;
  result.row_stride = *padded_row / element;
  result.batch_stride = is_one ? 0 : *matrix / element;
  result.is_transient = false;
  bytes = *padded_end;
  return result;
}

std::uint8_t alignment_class(const Operand& operand, std::uint32_t batch) {
  std::uint64_t bits = operand.offset | kWorkspaceAlignment;
  // Matrices of a loop start at multiples of the stride.
  if (batch > 1) bits |= operand.batch_stride * size_of(operand.dtype);
  return static_cast<std::uint8_t>(std::countr_zero(bits));
}

}  // namespace

Result<Lowered> lower(const GemmProblem& problem, const VendorCall& call,
                      const VendorLimits& limits) {
  Lowered lowered{.a = problem.a, .b = problem.b, .c = problem.c, .d = problem.d};
  lowered.batch = call.is_loop ? 1 : problem.batch;
  lowered.is_c_in_place =
      call.has_vendor_c && backend::is_same_place(problem.c, problem.d, problem.batch);
  bool fits = true;
  const auto put = [&](Operand& operand, Dtype dtype) {
    const auto placed = place(operand, dtype, problem.batch, limits, lowered.bytes);
    fits = fits && placed.has_value();
    if (placed) operand = *placed;
  };
  if (call.converts_a) put(lowered.a, call.dtypes.a);
  if (call.converts_b) put(lowered.b, call.dtypes.b);
  if (call.has_staged_result) put(lowered.d, Dtype::kF32);
  if (!fits) {
    return fail(ErrorCode::kInvalidArgument,
                "{}: the workspace for converted operands does not fit 64 bits ({})", problem.op,
                backend::describe(problem));
  }
  return lowered;
}

PlanKey plan_key(const GemmProblem& problem, const VendorCall& call, const Lowered& lowered,
                 const VendorApi& api) {
  PlanKey key{.device = api.device(),
              .m = problem.m(),
              .n = problem.n(),
              .k = problem.k(),
              .a = call.dtypes.a,
              .b = call.dtypes.b,
              .d = call.dtypes.d,
              .is_a_transposed = problem.a.transposed,
              .is_b_transposed = problem.b.transposed,
              .a_row_stride = lowered.a.row_stride,
              .b_row_stride = lowered.b.row_stride,
              .d_row_stride = lowered.d.row_stride,
              .batch = lowered.batch,
              .alpha = scalar_class(problem.alpha),
              .beta = scalar_class(call.has_vendor_c ? problem.beta : 0.0f),
              .is_c_apart = call.has_vendor_c && !lowered.is_c_in_place,
              .activation = call.has_vendor_activation ? problem.epilogue.activation
                                                       : backend::Activation::kNone,
              .has_bias = call.has_vendor_bias,
              .a_alignment = alignment_class(lowered.a, problem.batch),
              .b_alignment = alignment_class(lowered.b, problem.batch),
              .d_alignment = alignment_class(lowered.d, problem.batch),
              .workspace_limit = api.workspace_limit()};
  if (lowered.batch > 1) {
    key.a_batch_stride = lowered.a.batch_stride;
    key.b_batch_stride = lowered.b.batch_stride;
    key.d_batch_stride = lowered.d.batch_stride;
  }
  if (call.has_vendor_c) {
    key.c_row_stride = lowered.c.row_stride;
    key.c_batch_stride = lowered.batch > 1 ? lowered.c.batch_stride : 0;
    key.c_alignment = alignment_class(lowered.c, problem.batch);
  }
  if (call.has_vendor_bias) key.bias = problem.epilogue.bias->dtype;
  return key;
}

KernelKey kernel_key(const GemmProblem& problem, const VendorCall& call, std::uint64_t device) {
  return {.device = device,
          .m = problem.m(),
          .n = problem.n(),
          .k = problem.k(),
          .is_a_transposed = problem.a.transposed,
          .is_b_transposed = problem.b.transposed,
          .alpha_bits = std::bit_cast<std::uint32_t>(problem.alpha),
          .beta_bits = std::bit_cast<std::uint32_t>(call.has_vendor_c ? problem.beta : 0.0f)};
}

DescriptorKey descriptor_key(const Operand& operand, std::uint32_t batch, std::uint64_t device) {
  return {.device = device,
          .rows = operand.rows,
          .cols = operand.cols,
          .row_stride = operand.row_stride,
          .batch = batch,
          .batch_stride = batch > 1 ? operand.batch_stride : 0,
          .dtype = operand.dtype};
}

Operand matrix_of(Operand operand, std::uint32_t index) {
  operand.offset += index * operand.batch_stride * size_of(operand.dtype);
  operand.batch_stride = 0;
  return operand;
}

}  // namespace tern::gpu
