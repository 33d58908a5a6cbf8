#include "backend/cpu/executable.h"

#include <algorithm>
#include <chrono>

#include "backend/cpu/bind.h"
#include "base/checked.h"
#include "base/float_environment.h"

namespace tern::cpu {
namespace {

static_assert(kKvPagePositions == program::kPagePositions, "kernels and runtime disagree on pages");

KvDtype dtype_of(program::KvDtype dtype) {
  return dtype == program::KvDtype::kF32 ? KvDtype::kF32 : KvDtype::kF16;
}

std::uint64_t page_bytes(const program::StateDecl& d, program::KvDtype dtype) {
  return kv_page_bytes(dtype_of(dtype), static_cast<int>(d.kv_heads), static_cast<int>(d.head_dim));
}

// The middle one; of an even number the lower of the two. Not of an empty list.
double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Result<std::shared_ptr<backend::StatePool>> CpuStates::make(
    const std::vector<program::StateDecl>& states, int pages) {
  auto pool = std::make_shared<CpuStates>();
  pool->pages_ = pages;
  pool->decls_ = states;
  for (const program::StateDecl& d : states) {
    const std::uint64_t page = page_bytes(d, d.k) + page_bytes(d, d.v);
    const auto count = checked_cast<std::uint64_t>(pages);
    const auto bytes = count ? checked_mul(page, *count) : std::nullopt;
    if (!bytes)
      return fail(ErrorCode::kOutOfMemory, "a KV cache of {} pages of {} bytes has no size", pages,
                  page);
    Result<AlignedBuffer> memory = AlignedBuffer::allocate(*bytes, {.what = "the KV cache"});
    TERN_TRY(memory);
    pool->memory_.push_back(std::move(*memory));
  }
  return std::shared_ptr<backend::StatePool>(std::move(pool));
}

std::uint64_t CpuStates::bytes() const {
  std::uint64_t total = 0;
  for (const AlignedBuffer& b : memory_) total += b.size();
  return total;
}

KvView CpuStates::view(std::uint32_t state) const {
  const program::StateDecl& d = decls_[state];
  // A view is written through by kv_store; the pool itself stays as it is.
  auto* base = const_cast<std::byte*>(memory_[state].data());
  KvView view;
  view.k_base = base;
  view.v_base = base + page_bytes(d, d.k);
  view.page_stride_bytes = page_bytes(d, d.k) + page_bytes(d, d.v);
  view.dtype_k = dtype_of(d.k);
  view.dtype_v = dtype_of(d.v);
  view.kv_heads = static_cast<int>(d.kv_heads);
  view.head_dim = static_cast<int>(d.head_dim);
  return view;
}

Result<std::unique_ptr<backend::Executable>> CpuExecutable::make(
    std::shared_ptr<const CpuPlan> plan, std::shared_ptr<const CpuWeights> weights,
    std::shared_ptr<CpuStates> states, const VendorParts& vendor) {
  std::unique_ptr<CpuExecutable> e(new CpuExecutable());
  Result<AlignedBuffer> arena = AlignedBuffer::allocate(plan->arena_bytes, {.what = "activations"});
  TERN_TRY(arena);
  Result<AlignedBuffer> scratch =
      AlignedBuffer::allocate(plan->vendor_offset, {.what = "the kernels' scratch"});
  TERN_TRY(scratch);
  e->plan_ = std::move(plan);
  e->weights_ = std::move(weights);
  e->states_ = std::move(states);
  e->arena_ = std::move(*arena);
  e->scratch_ = std::move(*scratch);
  const program::Program& p = e->plan_->program;
  for (std::size_t i = 0; i < p.rope_tables.size(); ++i) {
    RopeRows r;
    r.frequency = p.rope_tables[i].frequency.data();
    r.attention_factor = p.rope_tables[i].attention_factor;
    r.pairs = static_cast<int>(p.rope_tables[i].frequency.size());
    r.cos = reinterpret_cast<float*>(e->arena_.data() + e->plan_->rope_offsets[i]);
    r.sin = r.cos + static_cast<std::ptrdiff_t>(p.bucket.rows) * r.pairs;
    e->ropes_.push_back(r);
  }
  TERN_TRY(e->bind(vendor));
  e->batch_.reserve(e->plan_->limits);
  e->row_pages_.reserve(static_cast<std::size_t>(p.bucket.rows));
  return std::unique_ptr<backend::Executable>(std::move(e));
}

// The steps, and a bridge of this executable's own where the plan has products for it. Every such
// product is planned once for its largest step, so that a refusal is an error of load().
Result<void> CpuExecutable::bind(const VendorParts& vendor) {
  bool has_vendor = false;
  for (const std::vector<ProductKernel>& kernels : plan_->products)
    for (const ProductKernel& k : kernels) has_vendor = has_vendor || k.variant.is_vendor;
  VendorMemory memory;
  if (has_vendor) {
    if (!vendor.library)
      return fail(ErrorCode::kInternal,
                  "[cpu] the plan has products of a library that is not here");
    const auto host = [&vendor](std::span<const std::byte> bytes) {
      // The bridge writes to memory that it is given to write to, and to none else.
      return std::make_shared<const backend::HostAllocation>(
          vendor.device, const_cast<std::byte*>(bytes.data()), bytes.size());
    };
    memory = {host({arena_.data(), arena_.size()}), host(weights_->memory())};
    vendor_ = make_cpu_vendor_gemm(vendor.library, vendor.pool, vendor.device, plan_->profile.cpu);
    TERN_ASSIGN(vendor_context_, CpuEncodeContext::make(vendor.device, plan_->vendor_bytes));
  }
  steps_ = StepBinder(*plan_, *weights_, *states_, arena_.data(), ropes_, memory).bind();
  for (const Step& step : steps_) {
    const auto* dense = std::get_if<DenseLinearStep>(&step);
    if (!dense || !dense->vendor.y.memory) continue;
    const backend::GemmProblem problem = gemm_problem(dense->vendor, plan_->rows_of(dense->y.axis));
    TERN_TRY(vendor_->plan(problem));
  }
  return {};
}

void CpuExecutable::set_batch(const program::BatchBlock& batch) {
  batch_ = batch;  // element-wise copies into memory that is already there
  row_pages_.clear();
  for (std::uint32_t s : batch_.sequence)
    row_pages_.push_back(batch_.pages.data() + batch_.sequences[s].page_begin);
}

RunContext CpuExecutable::context(ThreadPool& pool, const CancelToken& cancel) {
  return {.pool = pool,
          .batch = batch_,
          .cancel = cancel,
          .pages = row_pages_.data(),
          .worker_scratch = scratch_.data(),
          .worker_scratch_bytes = plan_->worker_scratch_bytes,
          .attention_partials = reinterpret_cast<float*>(scratch_.data() + plan_->partials_offset),
          .attention_partial_floats = plan_->attention_partial_floats,
          .kv_flags = kv_flags_,
          .vendor = vendor_.get(),
          .vendor_context = vendor_context_.get()};
}

void CpuExecutable::prepare(ThreadPool& pool) {
  kv_flags_.store(0, std::memory_order_relaxed);
  const CancelToken never;
  RunContext ctx = context(pool, never);
  for (const RopeRows& r : ropes_) {
    ctx.for_rows(ctx.rows(), std::int64_t{r.pairs} * 32, [&](int begin, int end) {
      rope_tables(r.frequency, r.pairs, r.attention_factor, batch_.position.data(), r.cos, r.sin,
                  begin, end);
    });
  }
}

bool CpuExecutable::run(ThreadPool& pool, const CancelToken& cancel) {
  const KernelFloatMode mode;
  prepare(pool);
  RunContext ctx = context(pool, cancel);
  for (const Step& step : steps_) {
    if (cancel.requested()) return false;
    std::visit([&ctx](const auto& s) { s.run(ctx); }, step);
  }
  return !cancel.requested();
}

std::vector<double> CpuExecutable::time_steps(ThreadPool& pool, int repeats) {
  const KernelFloatMode mode;
  const CancelToken never;
  std::vector<std::vector<double>> samples(steps_.size());
  for (int i = 0; i < std::max(repeats, 1); ++i) {
    prepare(pool);
    RunContext ctx = context(pool, never);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const auto start = std::chrono::steady_clock::now();
      std::visit([&ctx](const auto& step) { step.run(ctx); }, steps_[s]);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      samples[s].push_back(taken.count());
    }
  }
  std::vector<double> medians;
  medians.reserve(samples.size());
  for (std::vector<double>& of_step : samples) medians.push_back(median(of_step));
  return medians;
}

std::string CpuExecutable::first_non_finite(ThreadPool& pool) {
  const KernelFloatMode mode;
  const CancelToken never;
  prepare(pool);
  RunContext ctx = context(pool, never);
  const program::Program& p = plan_->program;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    std::visit([&ctx](const auto& step) { step.run(ctx); }, steps_[i]);
    const program::Op& op = p.ops[i];
    if (op.result == program::kNoValue || p.at(op.result).element != program::Element::kF32)
      continue;
    const program::RowsType& type = p.at(op.result).rows;
    const backend::Placement& place = plan_->placements[op.result];
    const auto* x = reinterpret_cast<const float*>(arena_.data() + place.offset);
    if (!plan_->kernels.elementwise.variant->has_non_finite(x, place.row_stride, type.width, 0,
                                                            ctx.count(type.axis)))
      continue;
    const program::Region& region = p.regions[op.region];
    const std::string where =
        region.index < 0 ? region.name : fmt::format("{} {}", region.name, region.index);
    return fmt::format("{} in {}", program::name_of(op), where);
  }
  return {};
}

backend::OutputRows CpuExecutable::output(std::size_t index) const {
  const program::Program& p = plan_->program;
  const program::ValueId v = p.outputs[index].value;
  const backend::Placement& place = plan_->placements[v];
  const program::RowsType& type = p.at(v).rows;
  const std::int64_t rows = type.axis == program::RowAxis::kRows
                                ? batch_.rows()
                                : static_cast<std::int64_t>(batch_.output_rows.size());
  return {reinterpret_cast<const float*>(arena_.data() + place.offset), rows, type.width,
          place.row_stride};
}

}  // namespace tern::cpu
