// Tiles of a product over the thread pool, each one call of OpenBLAS or of the plain product.
#include "backend/cpu/vendor/cpu_vendor_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backend/cpu/vendor/finish.h"
#include "backend/cpu/vendor/plain_sgemm.h"
#include "backend/cpu/vendor/widen.h"
#include "base/checked.h"
#include "base/error.h"

namespace tern::cpu {

namespace {

using backend::AllocationRef;
using backend::GemmPlan;
using backend::GemmProblem;
using backend::HostAllocation;
using backend::Operand;
using backend::OperandName;

constexpr std::array kTriples = {backend::DtypeTriple{Dtype::kF32, Dtype::kF32, Dtype::kF32}};
// Sizes are ints in the library's interface. C in place is its beta; everything else is our pass.
constexpr backend::VendorLimits kOpenblas{
    .name = "openblas", .triples = kTriples, .has_separate_c = false};
constexpr backend::VendorLimits kPlain{
    .name = "plain", .triples = kTriples, .has_separate_c = false};

// Widened slices: 512 x 2,048 f32 are 4 MiB per operand and thread.
constexpr std::uint64_t kMaxTile = 512;
constexpr std::uint64_t kMaxDepth = 2048;

// How D is cut: a function of the shape alone.
struct Tiling {
  std::uint64_t rows = 0, columns = 0;  // of a tile
  std::uint64_t depth = 0;              // of k at a time
  std::uint64_t row_tiles = 0, column_tiles = 0;
  [[nodiscard]] std::uint64_t count(std::uint32_t batch) const {
    return row_tiles * column_tiles * batch;
  }
};

Tiling tile_shape(const GemmProblem& problem, const backend::VendorCall& call) {
  const std::uint64_t m = problem.m();
  const std::uint64_t n = problem.n();
  Tiling t{.rows = std::min(m, kMaxTile), .columns = std::min(n, kMaxTile)};
  const bool widens = call.converts_a || call.converts_b;
  t.depth = widens ? std::min(problem.k(), kMaxDepth) : problem.k();
  // Smaller tiles until there are some for every thread of a usual machine, but none of less work
  // than about 100 us: each packs its slices of A and B anew.
  constexpr std::uint64_t kWanted = 8;
  constexpr double kLeastWork = 8e6;
  const auto work = [&] {
    return static_cast<double>(t.rows) * static_cast<double>(t.columns) *
           static_cast<double>(problem.k());
  };
  const auto tiles = [&] {
    return ceil_div(static_cast<std::int64_t>(m), static_cast<std::int64_t>(t.rows)) *
           ceil_div(static_cast<std::int64_t>(n), static_cast<std::int64_t>(t.columns)) *
           problem.batch;
  };
  while (tiles() < static_cast<std::int64_t>(kWanted) && work() > kLeastWork) {
    std::uint64_t& longer = t.columns >= t.rows ? t.columns : t.rows;
    if (longer <= 64) break;
    longer = static_cast<std::uint64_t>(round_up(static_cast<std::int64_t>((longer + 1) / 2), 32));
  }
  t.row_tiles = (m + t.rows - 1) / t.rows;
  t.column_tiles = (n + t.columns - 1) / t.columns;
  return t;
}

// Floats of workspace that one thread needs: slices of A and B, and a tile of sums.
struct Scratch {
  std::uint64_t a = 0, b = 0, sums = 0;
  [[nodiscard]] std::uint64_t floats() const { return a + b + sums; }
};

Scratch scratch_of(const Tiling& t, const backend::VendorCall& call) {
  const auto padded = [](std::uint64_t floats) { return (floats + 63) / 64 * 64; };
  Scratch s;
  if (call.converts_a) s.a = padded(t.rows * t.depth);
  if (call.converts_b) s.b = padded(t.columns * t.depth);
  if (call.has_staged_result) s.sums = padded(t.rows * t.columns);
  return s;
}

std::byte* data_of(const AllocationRef& memory, std::uint64_t offset) {
  return static_cast<const HostAllocation&>(*memory).data() + offset;
}

const std::byte* matrix_of(const Operand& o, std::uint64_t index) {
  return data_of(o.memory, o.offset + index * o.batch_stride * size_of(o.dtype));
}

// A block of op(X) in f32 as the product takes it.
struct Block {
  const float* data = nullptr;
  int row_stride = 0;
};

// One encode: what the threads share.
class Run {
 public:
  Run(const GemmPlan& plan, const OpenblasLibrary* library, const Widen& widen,
      std::byte* workspace)
      : problem_(plan.problem),
        call_(plan.call),
        tiling_(tile_shape(plan.problem, plan.call)),
        scratch_(scratch_of(tiling_, plan.call)),
        library_(library),
        widen_(widen),
        workspace_(reinterpret_cast<float*>(workspace)) {}

  void on(ThreadPool& pool) const {
    pool.parallel_for(static_cast<std::int64_t>(tiling_.count(problem_.batch)), 1,
                      [this](std::int64_t begin, std::int64_t end, int worker) noexcept {
                        for (std::int64_t i = begin; i < end; ++i)
                          tile(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(worker));
                      });
  }

 private:
  struct Place {
    std::uint64_t index, row, rows, column, columns;  // matrix of the batch, part of D
  };

  void tile(std::uint64_t number, std::uint64_t worker) const {
    const std::uint64_t per_matrix = tiling_.row_tiles * tiling_.column_tiles;
    const std::uint64_t within = number % per_matrix;
    Place p{};
    p.index = number / per_matrix;
    // Rows run fastest: threads beside each other read the same slice of the weights.
    p.row = within % tiling_.row_tiles * tiling_.rows;
    p.column = within / tiling_.row_tiles * tiling_.columns;
    p.rows = std::min(tiling_.rows, problem_.m() - p.row);
    p.columns = std::min(tiling_.columns, problem_.n() - p.column);
    float* scratch = workspace_ != nullptr ? workspace_ + worker * scratch_.floats() : nullptr;
    const Operand& d = problem_.d;
    auto* out = const_cast<std::byte*>(matrix_of(d, p.index)) +
                (p.row * d.row_stride + p.column) * size_of(d.dtype);
    float* sums =
        call_.has_staged_result ? scratch + scratch_.a + scratch_.b : reinterpret_cast<float*>(out);
    const auto stride = static_cast<int>(call_.has_staged_result ? tiling_.columns : d.row_stride);
    if (call_.has_product) multiply(p, scratch, sums, stride);
    if (call_.has_own_epilogue) finish(p, sums, stride, out);
  }

  void multiply(const Place& p, float* scratch, float* sums, int stride) const {
    for (std::uint64_t k = 0; k < problem_.k(); k += tiling_.depth) {
      const std::uint64_t depth = std::min(tiling_.depth, problem_.k() - k);
      const Operand& oa = problem_.a;
      const Operand& ob = problem_.b;
      // As stored: op(A) is [m, k], so a transposed A holds k along its rows.
      const Block a = oa.transposed ? block(oa, p.index, k, depth, p.row, p.rows, scratch)
                                    : block(oa, p.index, p.row, p.rows, k, depth, scratch);
      float* b_scratch = scratch + scratch_.a;
      const Block b = ob.transposed ? block(ob, p.index, p.column, p.columns, k, depth, b_scratch)
                                    : block(ob, p.index, k, depth, p.column, p.columns, b_scratch);
      const float first_beta = call_.has_vendor_c ? problem_.beta : 0.0f;
      const SgemmArgs args{.m = static_cast<int>(p.rows),
                           .n = static_cast<int>(p.columns),
                           .k = static_cast<int>(depth),
                           .is_a_transposed = oa.transposed,
                           .is_b_transposed = ob.transposed,
                           .alpha = problem_.alpha,
                           .a = a.data,
                           .a_row_stride = a.row_stride,
                           .b = b.data,
                           .b_row_stride = b.row_stride,
                           .beta = k == 0 ? first_beta : 1.0f,
                           .c = sums,
                           .c_row_stride = stride};
      library_ != nullptr ? library_->sgemm(args) : plain_sgemm(args);
    }
  }

  // Rows and columns of a stored matrix: in place when they are f32, else widened.
  Block block(const Operand& o, std::uint64_t index, std::uint64_t row, std::uint64_t rows,
              std::uint64_t column, std::uint64_t columns, float* scratch) const {
    const std::byte* from = matrix_of(o, index) + (row * o.row_stride + column) * size_of(o.dtype);
    if (o.dtype == Dtype::kF32)
      return {reinterpret_cast<const float*>(from), static_cast<int>(o.row_stride)};
    const WidenFn widen = o.dtype == Dtype::kF16 ? widen_.from_half : widen_.from_bf16;
    const auto* bits = reinterpret_cast<const std::uint16_t*>(from);
    for (std::uint64_t r = 0; r < rows; ++r)
      widen(bits + r * o.row_stride, scratch + r * columns, columns);
    return {scratch, static_cast<int>(columns)};
  }

  void finish(const Place& p, const float* sums, int stride, std::byte* out) const {
    const bool reads_c = problem_.beta != 0.0f && !call_.has_vendor_c;
    FinishArgs args{.rows = static_cast<std::int64_t>(p.rows),
                    .columns = static_cast<std::int64_t>(p.columns),
                    .sums = call_.has_product ? sums : nullptr,
                    .sums_row_stride = stride,
                    .beta = problem_.beta,
                    .activation = problem_.epilogue.activation,
                    .d = out,
                    .d_row_stride = static_cast<std::int64_t>(problem_.d.row_stride),
                    .dtype = problem_.d.dtype};
    if (reads_c) {
      const Operand& c = problem_.c;
      args.c = matrix_of(c, p.index) + (p.row * c.row_stride + p.column) * size_of(c.dtype);
      args.c_row_stride = static_cast<std::int64_t>(c.row_stride);
    }
    if (problem_.epilogue.bias) {
      const backend::Bias& bias = *problem_.epilogue.bias;
      args.bias = data_of(bias.memory, bias.offset + p.column * size_of(bias.dtype));
      args.bias_dtype = bias.dtype;
    }
    finish_tile(args);
  }

  const GemmProblem& problem_;
  const backend::VendorCall& call_;
  const Tiling tiling_;
  const Scratch scratch_;
  const OpenblasLibrary* const library_;
  const Widen widen_;
  float* const workspace_;
};

class CpuVendorGemm final : public backend::VendorGemm {
 public:
  CpuVendorGemm(std::shared_ptr<const OpenblasLibrary> library, ThreadPool& pool,
                std::uint64_t device, CpuFeatures features)
      : library_(std::move(library)),
        pool_(pool),
        device_(device),
        widen_(widen_functions(features)) {}

  [[nodiscard]] std::string_view name() const override { return limits().name; }
  [[nodiscard]] Result<GemmPlan> plan(const GemmProblem& problem) override;
  [[nodiscard]] Result<void> encode(const GemmPlan& plan, backend::EncodeContext& context) override;
  void reset() override {}

 private:
  [[nodiscard]] const backend::VendorLimits& limits() const {
    return library_ ? kOpenblas : kPlain;
  }
  [[nodiscard]] Result<void> check_memory(const GemmProblem& problem) const;

  const std::shared_ptr<const OpenblasLibrary> library_;
  ThreadPool& pool_;
  const std::uint64_t device_;
  const Widen widen_;
};

Result<void> CpuVendorGemm::check_memory(const GemmProblem& problem) const {
  const auto check = [&](const AllocationRef& memory, OperandName which) -> Result<void> {
    if (!memory || (memory->device() == device_ &&
                    dynamic_cast<const HostAllocation*>(memory.get()) != nullptr))
      return {};
    return fail(ErrorCode::kInvalidArgument,
                "{}: {} lies on device {}; the CPU multiplies host memory of device {}", problem.op,
                to_string(which), memory->device(), device_);
  };
  TERN_TRY(check(problem.a.memory, OperandName::kA));
  TERN_TRY(check(problem.b.memory, OperandName::kB));
  TERN_TRY(check(problem.d.memory, OperandName::kD));
  if (problem.beta != 0.0f) TERN_TRY(check(problem.c.memory, OperandName::kC));
  if (problem.epilogue.bias) TERN_TRY(check(problem.epilogue.bias->memory, OperandName::kBias));
  return {};
}

Result<GemmPlan> CpuVendorGemm::plan(const GemmProblem& problem) {
  TERN_TRY(check_problem(problem));
  TERN_TRY(check_memory(problem));
  const backend::Eligibility eligible = eligibility(problem, limits());
  if (!eligible.verdict) {
    return fail(ErrorCode::kUnsupported, "{}: {} cannot run it: {} ({})", problem.op, name(),
                eligible.verdict.reason, describe(problem));
  }
  GemmPlan plan;
  plan.problem = problem;
  plan.vendor = name();
  plan.call = eligible.call;
  if (problem.is_empty()) {
    plan.reason = "nothing to do";
    return plan;
  }
  const Tiling tiling = tile_shape(problem, plan.call);
  const auto convert = [&](OperandName which, const Operand& o) {
    const std::uint64_t matrices = o.batch_stride == 0 ? 1 : problem.batch;
    plan.conversions.push_back({which, o.dtype, Dtype::kF32, o.rows * o.cols * matrices});
  };
  if (plan.call.converts_a) convert(OperandName::kA, problem.a);
  if (plan.call.converts_b) convert(OperandName::kB, problem.b);
  plan.vendor_calls = plan.call.has_product ? 1 : 0;
  plan.workspace_bytes = scratch_of(tiling, plan.call).floats() * sizeof(float) *
                         static_cast<std::uint64_t>(pool_.threads());
  plan.reason =
      fmt::format("{} tiles of {} x {}, {} operands widened, {}", tiling.count(problem.batch),
                  tiling.rows, tiling.columns, plan.conversions.size(),
                  plan.call.has_own_epilogue ? "one pass behind" : "no pass behind");
  return plan;
}

Result<void> CpuVendorGemm::encode(const GemmPlan& plan, backend::EncodeContext& context) {
  if (plan.problem.is_empty()) return {};
  std::byte* workspace = nullptr;
  if (plan.workspace_bytes != 0) {
    TERN_ASSIGN(const AllocationRef memory, context.workspace(plan.workspace_bytes));
    workspace = data_of(memory, 0);
  }
  Run(plan, library_.get(), widen_, workspace).on(pool_);
  return {};
}

}  // namespace

const backend::VendorLimits& openblas_limits() { return kOpenblas; }
const backend::VendorLimits& plain_limits() { return kPlain; }

CpuEncodeContext::CpuEncodeContext(std::uint64_t device, std::shared_ptr<AlignedBuffer> buffer)
    : memory_(std::make_shared<HostAllocation>(device, buffer->data(), buffer->size(), buffer)) {}

Result<std::unique_ptr<CpuEncodeContext>> CpuEncodeContext::make(std::uint64_t device,
                                                                 std::uint64_t bytes) {
  TERN_ASSIGN(AlignedBuffer buffer,
              AlignedBuffer::allocate(
                  bytes, {.alignment = 256, .what = "the workspace of vendor products"}));
  return std::unique_ptr<CpuEncodeContext>(
      new CpuEncodeContext(device, std::make_shared<AlignedBuffer>(std::move(buffer))));
}

Result<AllocationRef> CpuEncodeContext::workspace(std::uint64_t bytes) {
  if (bytes > memory_->bytes()) {
    return fail(ErrorCode::kOutOfMemory,
                "the workspace of vendor products has {} bytes, but {} are needed",
                memory_->bytes(), bytes);
  }
  return memory_;
}

std::unique_ptr<backend::VendorGemm> make_cpu_vendor_gemm(
    std::shared_ptr<const OpenblasLibrary> library, ThreadPool& pool, std::uint64_t device,
    CpuFeatures features) {
  return std::make_unique<CpuVendorGemm>(std::move(library), pool, device, features);
}

}  // namespace tern::cpu
