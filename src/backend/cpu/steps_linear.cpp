// Products by weights, split over the threads by blocks of outputs.
#include <algorithm>

#include "backend/cpu/steps.h"
#include "base/checked.h"

namespace tern::cpu {
namespace {

// Packed kernels have no bias of their own: few models have one. The residual comes last, with one
// rounding.
void add_bias(RunContext& ctx, const RowsRef& y, const float* bias, const RowsRef& residual) {
  ctx.for_rows(ctx.count(y.axis), y.width, [&](int begin, int end) {
    for (int r = begin; r < end; ++r) {
      float* row = y.data + r * y.stride;
      for (std::int64_t n = 0; n < y.width; ++n) row[n] += bias[n];
      if (!residual.data) continue;
      const float* before = residual.data + r * residual.stride;
      for (std::int64_t n = 0; n < y.width; ++n) row[n] = before[n] + row[n];
    }
  });
}

}  // namespace

void PackedLinearStep::run(RunContext& ctx) const {
  PackedMatmulArgs args{};
  args.weights = weight->view;
  args.records = records;
  args.x = x.data;
  args.x_stride = x.stride;
  args.rows = ctx.count(y.axis);
  args.y = y.data;
  args.y_stride = y.stride;
  args.residual = bias ? nullptr : residual.data;
  args.residual_stride = residual.stride;
  if (args.rows == 0) return;
  const PackedMatmulFn fn = function_for(fns, args.rows);
  const std::int64_t blocks = weight->layout.row_blocks();
  // At least two pieces a thread, so that one that starts late does not hold up the others.
  const std::int64_t even = ceil_div(blocks, 2 * static_cast<std::int64_t>(ctx.pool.threads()));
  const std::int64_t chunk = std::min(packed_task_blocks(weight->layout, args.rows), even);
  ctx.pool.parallel_for(blocks, chunk, [&](std::int64_t begin, std::int64_t end, int worker) {
    if (ctx.cancel.requested()) return;
    PackedMatmulArgs part = args;
    part.block_begin = begin;
    part.block_end = end;
    part.scratch = ctx.scratch_of(worker);
    fn(part);
  });
  if (bias) add_bias(ctx, y, bias, residual);
}

void BlockLinearStep::run(RunContext& ctx) const {
  BlockProductArgs args;
  args.w = *weight;
  args.x = block;
  args.x_f32 = x.data;
  args.x_f32_row_stride = x.stride;
  args.y = y.data;
  args.y_row_stride = y.stride;
  args.bias = bias;
  args.residual = residual.data;
  args.residual_row_stride = residual.stride;
  const int rows = ctx.count(y.axis);
  if (rows == 0) return;
  const BlockProductFn fn = function_for(fns, rows);
  const std::int64_t blocks = ceil_div(weight->outputs, kBlockRows);
  ctx.pool.parallel_for(blocks, ctx.pool.chunk_for(blocks, 2),
                        [&](std::int64_t begin, std::int64_t end, int) {
                          if (!ctx.cancel.requested()) fn(args, 0, rows, begin, end);
                        });
}

// False where the bridge refuses: nothing was written then.
bool DenseLinearStep::run_vendor(RunContext& ctx, int rows) const {
  if (!ctx.vendor) return false;
  const Result<backend::GemmPlan> plan = ctx.vendor->plan(gemm_problem(vendor, rows));
  return plan.ok() && ctx.vendor->encode(*plan, *ctx.vendor_context).ok();
}

void DenseLinearStep::run(RunContext& ctx) const {
  const int rows = ctx.count(y.axis);
  if (rows == 0) return;
  DenseProductFn fn = function_for(fns, rows);
  if (!fn) {
    if (run_vendor(ctx, rows)) return;
    fn = own;
  }
  DenseProductArgs args;
  args.format = weight->format;
  args.w = weight->data;
  args.w_row_stride = weight->inputs;
  args.inputs = weight->inputs;
  args.x = x.data;
  args.x_row_stride = x.stride;
  args.y = y.data;
  args.y_row_stride = y.stride;
  args.bias = bias;
  args.residual = residual.data;
  args.residual_row_stride = residual.stride;
  ctx.pool.parallel_for(weight->rows, ctx.pool.chunk_for(weight->rows, 16),
                        [&](std::int64_t begin, std::int64_t end, int) {
                          if (!ctx.cancel.requested()) fn(args, 0, rows, begin, end);
                        });
}

}  // namespace tern::cpu
