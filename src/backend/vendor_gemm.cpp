// Checks that hold for every vendor: shapes, strides, ranges and overlaps, in checked arithmetic.
#include "backend/vendor_gemm.h"

#include <fmt/format.h>

#include <array>
#include <atomic>

#include "base/checked.h"
#include "base/error.h"

namespace tern::backend {

AllocationId next_allocation_id() {
  static std::atomic<AllocationId> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::string_view to_string(Activation activation) {
  constexpr std::array<std::string_view, kActivations> kNames = {"none", "relu", "silu", "gelu_erf",
                                                                 "gelu_tanh"};
  return kNames[static_cast<std::size_t>(activation)];
}

std::string_view to_string(OperandName name) {
  constexpr std::array<std::string_view, 5> kNames = {"A", "B", "C", "D", "bias"};
  return kNames[static_cast<std::size_t>(name)];
}

std::string describe(const GemmProblem& problem) {
  std::string text = fmt::format(
      "m {}, n {}, k {}, {}{} x {}{} -> {}, batch {}", problem.m(), problem.n(), problem.k(),
      to_string(problem.a.dtype), problem.a.transposed ? "^T" : "", to_string(problem.b.dtype),
      problem.b.transposed ? "^T" : "", to_string(problem.d.dtype), problem.batch);
  if (problem.beta != 0.0f) text += fmt::format(", beta {}", problem.beta);
  if (problem.epilogue.bias) text += ", bias";
  if (problem.epilogue.activation != Activation::kNone)
    text += fmt::format(", {}", to_string(problem.epilogue.activation));
  return text;
}

namespace {

// The elements from the first to the last of the batch, or nothing when 64 bits do not hold them.
std::optional<std::uint64_t> span_elements(const Operand& operand, std::uint32_t batch) {
  if (operand.rows == 0 || operand.cols == 0 || batch == 0) return 0;
  const auto rows = checked_mul(operand.rows - 1, operand.row_stride);
  const auto matrices = checked_mul(std::uint64_t{batch} - 1, operand.batch_stride);
  if (!rows || !matrices) return std::nullopt;
  const auto sum = checked_add(*rows, *matrices);
  if (!sum) return std::nullopt;
  return checked_add(*sum, operand.cols);
}

std::string shape_of(const Operand& operand, std::uint32_t batch) {
  std::string text = fmt::format("[{}, {}] of {} with row stride {}", operand.rows, operand.cols,
                                 to_string(operand.dtype), operand.row_stride);
  if (batch > 1)
    text += fmt::format(", {} times with batch stride {}", batch, operand.batch_stride);
  return text;
}

bool is_bridge_dtype(Dtype dtype) {
  return dtype == Dtype::kF32 || dtype == Dtype::kF16 || dtype == Dtype::kBf16;
}

// A view into one problem that the checks share, so that each message starts with the op.
class Checker {
 public:
  explicit Checker(const GemmProblem& problem) : problem_(problem) {}

  Result<void> check() const {
    TERN_TRY(check_shapes());
    TERN_TRY(check_operand(problem_.a, OperandName::kA));
    TERN_TRY(check_operand(problem_.b, OperandName::kB));
    TERN_TRY(check_operand(problem_.d, OperandName::kD));
    if (problem_.beta != 0.0f) TERN_TRY(check_operand(problem_.c, OperandName::kC));
    TERN_TRY(check_bias());
    if (problem_.is_empty()) return {};
    TERN_TRY(check_result_is_injective());
    return check_overlaps();
  }

 private:
  Result<void> check_shapes() const {
    const GemmProblem& p = problem_;
    const std::uint64_t b_inputs = p.b.transposed ? p.b.cols : p.b.rows;
    if (b_inputs != p.k()) {
      return fail(ErrorCode::kInvalidArgument,
                  "{}: op(A) is [{}, {}] and op(B) is [{}, {}]: the inner sizes must be equal",
                  p.op, p.m(), p.k(), b_inputs, p.n());
    }
    TERN_TRY(check_is_result_shape(p.d, OperandName::kD));
    if (p.beta != 0.0f) {
      TERN_TRY(check_is_result_shape(p.c, OperandName::kC));
      if (p.c.dtype != p.d.dtype) {
        return fail(ErrorCode::kInvalidArgument, "{}: C is {} and D is {}: they must be equal",
                    p.op, to_string(p.c.dtype), to_string(p.d.dtype));
      }
    }
    return {};
  }

  Result<void> check_is_result_shape(const Operand& operand, OperandName name) const {
    if (operand.transposed) {
      return fail(ErrorCode::kInvalidArgument,
                  "{}: {} is marked transposed; only A and B can be. Exchange A and B instead",
                  problem_.op, to_string(name));
    }
    if (operand.rows != problem_.m() || operand.cols != problem_.n()) {
      return fail(ErrorCode::kInvalidArgument, "{}: {} is [{}, {}], the product is [{}, {}]",
                  problem_.op, to_string(name), operand.rows, operand.cols, problem_.m(),
                  problem_.n());
    }
    return {};
  }

  Result<void> check_range(const AllocationRef& memory, std::uint64_t offset, std::uint64_t bytes,
                           OperandName name, const std::string& shape) const {
    if (bytes == 0) return {};
    if (!memory) {
      return fail(ErrorCode::kInvalidArgument, "{}: {}: {} has no memory", problem_.op,
                  to_string(name), shape);
    }
    const auto end = checked_add(offset, bytes);
    if (!end || *end > memory->bytes()) {
      return fail(ErrorCode::kInvalidArgument,
                  "{}: {}: {} at byte {} needs {} bytes, but its allocation (id {}) has {}",
                  problem_.op, to_string(name), shape, offset, bytes, memory->id(),
                  memory->bytes());
    }
    return {};
  }

  Result<void> check_operand(const Operand& operand, OperandName name) const {
    if (!is_bridge_dtype(operand.dtype)) {
      return fail(ErrorCode::kUnsupported,
                  "{}: {} is {}; the vendor bridge multiplies f32, f16 and bf16", problem_.op,
                  to_string(name), to_string(operand.dtype));
    }
    if (operand.row_stride < operand.cols) {
      return fail(ErrorCode::kInvalidArgument,
                  "{}: {}: the row stride {} is below the width {} (elements)", problem_.op,
                  to_string(name), operand.row_stride, operand.cols);
    }
    if (operand.offset % size_of(operand.dtype) != 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "{}: {}: byte offset {} is no multiple of an element of {} ({} bytes)",
                  problem_.op, to_string(name), operand.offset, to_string(operand.dtype),
                  size_of(operand.dtype));
    }
    TERN_ASSIGN(const std::uint64_t bytes, span_bytes(problem_, operand, name));
    return check_range(operand.memory, operand.offset, bytes, name,
                       shape_of(operand, problem_.batch));
  }

  Result<void> check_bias() const {
    if (!problem_.epilogue.bias) return {};
    const Bias& bias = *problem_.epilogue.bias;
    if (bias.dtype != Dtype::kF32 && bias.dtype != problem_.d.dtype) {
      return fail(ErrorCode::kUnsupported, "{}: bias is {}; it must be f32 or D's {}", problem_.op,
                  to_string(bias.dtype), to_string(problem_.d.dtype));
    }
    if (bias.offset % size_of(bias.dtype) != 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "{}: bias: byte offset {} is no multiple of an element of {}", problem_.op,
                  bias.offset, to_string(bias.dtype));
    }
    const auto bytes = checked_mul(problem_.n(), size_of(bias.dtype));
    if (!bytes) {
      return fail(ErrorCode::kInvalidArgument, "{}: bias: {} elements do not fit 64 bits",
                  problem_.op, problem_.n());
    }
    return check_range(bias.memory, bias.offset, problem_.is_empty() ? 0 : *bytes,
                       OperandName::kBias,
                       fmt::format("{} elements of {}", problem_.n(), to_string(bias.dtype)));
  }

  // Two elements of D never share a byte: batches lie behind one another, or beside one another
  // within a row (the heads of an attention).
  Result<void> check_result_is_injective() const {
    const Operand& d = problem_.d;
    if (problem_.batch == 1) return {};
    // Neither overflows: check_operand has computed larger sums.
    const std::uint64_t matrix = (d.rows - 1) * d.row_stride + d.cols;
    if (d.batch_stride >= matrix) return {};
    const std::uint64_t row = (std::uint64_t{problem_.batch} - 1) * d.batch_stride + d.cols;
    if (d.batch_stride >= d.cols && (d.rows == 1 || row <= d.row_stride)) return {};
    return fail(ErrorCode::kInvalidArgument,
                "{}: D: {}: its matrices overlap each other; the batch stride must be at least {}, "
                "or let them lie side by side in a row",
                problem_.op, shape_of(d, problem_.batch), matrix);
  }

  Result<void> check_overlaps() const {
    TERN_TRY(check_apart(problem_.a, OperandName::kA));
    TERN_TRY(check_apart(problem_.b, OperandName::kB));
    if (problem_.beta != 0.0f && !is_same_place(problem_.c, problem_.d, problem_.batch))
      TERN_TRY(check_apart(problem_.c, OperandName::kC));
    if (problem_.epilogue.bias) {
      const Bias& bias = *problem_.epilogue.bias;
      const Operand row{.memory = bias.memory,
                        .offset = bias.offset,
                        .rows = 1,
                        .cols = problem_.n(),
                        .row_stride = problem_.n(),
                        .dtype = bias.dtype};
      TERN_TRY(check_apart(row, OperandName::kBias));
    }
    return {};
  }

  // A batch of single rows is one matrix whose rows they are.
  static Operand as_rows(Operand operand, std::uint32_t& batch) {
    if (operand.rows == 1) {
      operand.rows = batch;
      operand.row_stride = batch > 1 ? operand.batch_stride : operand.row_stride;
      batch = 1;
    }
    return operand;
  }

  // The bytes modulo `period` that the operand touches, as (start, width); nothing when its batches
  // do not repeat with that period.
  static std::optional<std::pair<std::uint64_t, std::uint64_t>> lane(const Operand& matrices,
                                                                     std::uint32_t batch,
                                                                     std::uint64_t period) {
    const Operand operand = as_rows(matrices, batch);
    const std::uint64_t element = size_of(operand.dtype);
    std::uint64_t width = operand.cols * element;
    if (operand.rows > 1 && operand.row_stride * element != period) return std::nullopt;
    if (batch > 1) {
      const std::uint64_t stride = operand.batch_stride * element;
      if (stride % period != 0) width += (std::uint64_t{batch} - 1) * stride;
    }
    if (width > period) return std::nullopt;
    return std::pair{operand.offset % period, width};
  }

  Result<void> check_apart(const Operand& operand, OperandName name) const {
    const Operand& d = problem_.d;
    if (!operand.memory || !d.memory || operand.memory->id() != d.memory->id()) return {};
    TERN_ASSIGN(const std::uint64_t bytes, span_bytes(problem_, operand, name));
    TERN_ASSIGN(const std::uint64_t d_bytes, span_bytes(problem_, d, OperandName::kD));
    if (bytes == 0 || d_bytes == 0) return {};
    if (operand.offset + bytes <= d.offset || d.offset + d_bytes <= operand.offset) return {};
    // Slices of one row side by side: equal strides, and columns that do not meet.
    std::uint32_t d_batch = problem_.batch;
    const std::uint64_t period = as_rows(d, d_batch).row_stride * size_of(d.dtype);
    const auto theirs = lane(operand, name == OperandName::kBias ? 1 : problem_.batch, period);
    const auto ours = lane(d, problem_.batch, period);
    if (theirs && ours) {
      const std::uint64_t forward = (ours->first + period - theirs->first) % period;
      const std::uint64_t backward = (theirs->first + period - ours->first) % period;
      if (forward >= theirs->second && backward >= ours->second) return {};
    }
    return fail(ErrorCode::kInvalidArgument,
                "{}: D (bytes {} to {}) lies over {} (bytes {} to {}) of the same allocation (id "
                "{}); only C may be D itself",
                problem_.op, d.offset, d.offset + d_bytes, to_string(name), operand.offset,
                operand.offset + bytes, d.memory->id());
  }

  const GemmProblem& problem_;
};

}  // namespace

bool is_same_place(const Operand& x, const Operand& y, std::uint32_t batch) {
  return x.memory && y.memory && x.memory->id() == y.memory->id() && x.offset == y.offset &&
         x.rows == y.rows && x.cols == y.cols && x.row_stride == y.row_stride &&
         x.dtype == y.dtype && (batch <= 1 || x.batch_stride == y.batch_stride);
}

Result<std::uint64_t> span_bytes(const GemmProblem& problem, const Operand& operand,
                                 OperandName name) {
  const auto elements = span_elements(operand, problem.batch);
  const auto bytes = elements ? checked_mul(*elements, size_of(operand.dtype)) : std::nullopt;
  const auto end = bytes ? checked_add(*bytes, operand.offset) : std::nullopt;
  if (!end) {
    return fail(ErrorCode::kInvalidArgument, "{}: {}: {} at byte {} does not fit 64 bits",
                problem.op, to_string(name), shape_of(operand, problem.batch), operand.offset);
  }
  return *bytes;
}

Result<void> check_problem(const GemmProblem& problem) { return Checker(problem).check(); }

}  // namespace tern::backend
