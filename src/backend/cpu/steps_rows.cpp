// Steps that work row by row: lookup, norms, rope, quantisation, elementwise.
#include "backend/cpu/steps.h"

namespace tern::cpu {

void EmbedStep::run(RunContext& ctx) const {
  const std::int32_t* ids = ctx.batch.ids.data();
  ctx.for_rows(ctx.rows(), y.width, [&](int begin, int end) {
    if (const auto* packed = std::get_if<ResidentPacked>(table)) {
      for (int r = begin; r < end; ++r) decode_packed(packed->view, ids[r], y.data + r * y.stride);
    } else if (const auto* block = std::get_if<BlockMatrix>(table)) {
      (void)block_embed(*block, ids, y.data, y.stride, begin, end);  // ids were checked
    } else if (const auto* dense = std::get_if<ResidentDense>(table)) {
      (void)dense_embed(dense->format, dense->data, dense->inputs, dense->rows, dense->inputs, ids,
                        y.data, y.stride, begin, end);
    }
  });
}

void RmsNormStep::run(RunContext& ctx) const {
  RmsNormArgs args;
  args.x = x.data;
  args.x_row_stride = x.stride;
  args.weight = weight->data;
  args.y = y.data;
  args.y_row_stride = y.stride;
  args.width = static_cast<int>(weight->width);
  args.heads = static_cast<int>(x.width / weight->width);
  args.eps = eps;
  ctx.for_rows(ctx.count(x.axis), x.width, [&](int begin, int end) { fn(args, begin, end); });
}

void QuantizeStep::run(RunContext& ctx) const {
  ctx.for_rows(ctx.count(x.axis), x.width * 8, [&](int begin, int end) {
    if (packed_fn) packed_fn({x.data, x.stride, begin, end, records});
    if (block_fn) block_fn(x.data, x.stride, block, begin, end);
  });
}

void RopeStep::run(RunContext& ctx) const {
  RopeArgs args;
  args.x = x.data;
  args.x_row_stride = x.stride;
  args.y = y.data;
  args.y_row_stride = y.stride;
  args.head_dim = head_dim;
  args.heads = static_cast<int>(x.width / head_dim);
  args.rope_dims = 2 * table->pairs;
  args.mode = mode;
  args.cos = table->cos;
  args.sin = table->sin;
  ctx.for_rows(ctx.rows(), x.width, [&](int begin, int end) { fn(args, begin, end); });
}

void KvStoreStep::run(RunContext& ctx) const {
  KvStoreArgs args;
  args.kv = kv;
  args.k = k.data;
  args.k_row_stride = k.stride;
  args.v = v.data;
  args.v_row_stride = v.stride;
  args.pages = ctx.pages;
  args.positions = ctx.batch.position.data();
  ctx.for_rows(ctx.rows(), 2 * k.width, [&](int begin, int end) {
    const std::uint32_t flags = fn(args, begin, end);
    if (flags) ctx.kv_flags.fetch_or(flags, std::memory_order_relaxed);
  });
}

void AddStep::run(RunContext& ctx) const {
  AddArgs args;
  args.a = a.data;
  args.a_row_stride = a.stride;
  args.b = b.data;
  args.b_row_stride = b.stride;
  args.y = y.data;
  args.y_row_stride = y.stride;
  args.width = a.width;
  ctx.for_rows(ctx.count(a.axis), a.width, [&](int begin, int end) { fn(args, begin, end); });
}

void SwigluStep::run(RunContext& ctx) const {
  SwigluArgs args;
  args.gate = gate.data;
  args.gate_row_stride = gate.stride;
  args.up = up.data;
  args.up_row_stride = up.stride;
  args.y = y.data;
  args.y_row_stride = y.stride;
  args.width = static_cast<int>(gate.width);
  const int width = args.width;
  ctx.for_rows(ctx.count(gate.axis), gate.width * 8,
               [&](int begin, int end) { fn(args, begin, end, 0, width); });
}

void GatherRowsStep::run(RunContext& ctx) const {
  const int outputs = ctx.count(program::RowAxis::kOutputRows);
  // Row numbers were checked when the block was submitted.
  (void)gather_rows(x.data, x.stride, ctx.rows(), ctx.batch.output_rows.data(), y.data, y.stride,
                    x.width, 0, outputs);
}

}  // namespace tern::cpu
