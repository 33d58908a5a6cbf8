// Attention of a step: decode form for a few rows of a sequence, prefill form for many.
#include <algorithm>

#include "backend/cpu/steps.h"
#include "base/checked.h"

namespace tern::cpu {
namespace {

// Partial results of one group of rows: at most so many (row, split) pairs.
constexpr int kPartialSlots = 1024;

}  // namespace

int attention_decode_rows(int bucket_rows, int splits) {
  return std::max(
      1, std::min({kAttentionDecodeRows, bucket_rows, kPartialSlots / std::max(splits, 1)}));
}

namespace {

void run_decode(RunContext& ctx, const AttentionStep& step, const AttentionArgs& args,
                int row_begin, int row_end) {
  const int splits = attention_splits(args.positions[row_end - 1] + 1);
  const int kv_heads = step.kv.kv_heads;
  if (splits == 1) {
    ctx.pool.parallel_for(kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      for (auto h = static_cast<int>(begin); h < end; ++h)
        step.variant->split(args, row_begin, row_end, h, 0, 1, ctx.attention_partials,
                            ctx.scratch_of(worker));
      for (auto h = static_cast<int>(begin); h < end; ++h)
        step.variant->merge(args, row_begin, row_end, h, 1, ctx.attention_partials);
    });
    return;
  }
  ctx.pool.parallel_for(static_cast<std::int64_t>(kv_heads) * splits, 1,
                        [&](std::int64_t begin, std::int64_t end, int worker) {
                          for (auto item = static_cast<int>(begin); item < end; ++item)
                            step.variant->split(args, row_begin, row_end, item / splits,
                                                item % splits, splits, ctx.attention_partials,
                                                ctx.scratch_of(worker));
                        });
  ctx.pool.parallel_for(kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (auto h = static_cast<int>(begin); h < end; ++h)
      step.variant->merge(args, row_begin, row_end, h, splits, ctx.attention_partials);
  });
}

void run_prefill(RunContext& ctx, const AttentionStep& step, const AttentionArgs& args,
                 int row_begin, int row_end) {
  const int item_rows = attention_prefill_rows(step.heads, step.kv.kv_heads);
  const std::int64_t items = ceil_div(row_end - row_begin, item_rows);
  const int kv_heads = step.kv.kv_heads;
  // Late rows attend to more keys, so they start first.
  ctx.pool.parallel_for(items * kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (ctx.cancel.requested()) return;
      const auto item = static_cast<int>(items - 1 - i / kv_heads);
      const int first = row_begin + item * item_rows;
      step.variant->prefill(args, first, std::min(first + item_rows, row_end),
                            static_cast<int>(i % kv_heads), ctx.scratch_of(worker));
    }
  });
}

}  // namespace

void AttentionStep::run(RunContext& ctx) const {
  AttentionArgs args;
  args.kv = kv;
  args.heads = heads;
  args.scale = scale;
  args.q = q.data;
  args.q_row_stride = q.stride;
  args.out = y.data;
  args.out_row_stride = y.stride;
  args.pages = ctx.pages;
  args.positions = ctx.batch.position.data();
  for (const program::BatchSequence& s : ctx.batch.sequences) {
    if (s.row_count == 0) continue;
    const auto first = static_cast<int>(s.first_row);
    const auto end = static_cast<int>(s.first_row + s.row_count);
    const int splits = attention_splits(static_cast<std::int64_t>(s.kv_length) + s.row_count);
    const auto need = attention_partial_floats(end - first, heads, kv.head_dim, splits);
    if (end - first <= kAttentionDecodeRows && need <= ctx.attention_partial_floats) {
      run_decode(ctx, *this, args, first, end);
    } else {
      run_prefill(ctx, *this, args, first, end);
    }
  }
}

}  // namespace tern::cpu
