// attention: softmax(q k^T * scale) v over the pages of each row's sequence, causal, with grouped
// query heads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/kernels/kv_store/kv_view.h"
#include "base/cpu_features.h"

namespace tern::cpu {

inline constexpr int kAttentionSplit =
    256;  // positions of a split: eight pages, on an absolute grid
inline constexpr int kAttentionDecodeRows = 8;  // rows of one sequence that decode takes at once
inline constexpr int kAttentionMaxHeadDim = 512;

// Query head h reads key head h / (heads / kv.kv_heads). Row r sees the keys 0 .. positions[r]; a
// row with a negative position sees none and gives zeros. The row's own key is in the cache before
// attention runs.
struct AttentionArgs {
  KvView kv;
  int heads = 0;             // a multiple of kv.kv_heads
  float scale = 0;           // usually 1 / sqrt(head_dim)
  const float* q = nullptr;  // [rows][heads * head_dim]
  std::int64_t q_row_stride = 0;
  float* out = nullptr;  // [rows][heads * head_dim]; may be q exactly (equal stride)
  std::int64_t out_row_stride = 0;
  const std::uint32_t* const* pages = nullptr;  // [rows] page table of the row's sequence
  const std::int32_t* positions = nullptr;      // [rows]
};

// What a row gets, in every form. Each split of 256 positions on the absolute grid gives (max, sum,
// o): scores are 8-lane sums over head_dim added pairwise, one maximum per split, p = exp(score -
// max), o = sum of p v with keys ascending; splits are merged in ascending order. So a row's bits
// depend on its query and its keys alone: not on the form, on the other rows, on how a prompt was
// cut or on the number of threads. Class S against f64. A row whose scores are all -Inf gives
// zeros; NaN or +Inf in the keys it may see gives NaN; keys beyond its position are never used,
// whatever they hold.

// Decode form, in two steps, for rows [row_begin, row_end) of ONE sequence (equal page tables), at
// most 8.
//   split: one (kv_head, split) of the group; writes the group's records of that split into
//   `partials`.
//          Work items (group, kv_head, split) are independent; splits run from 0 to
//          attention_splits(...) - 1.
//   merge: the rows' final output for one kv_head, after all its splits. `splits` is the number
//   that was run.
// partials: attention_partial_floats(...) floats of this group, 32-byte aligned, no initial value
// needed. scratch: attention_scratch_bytes(...) bytes of the calling thread, 64-byte aligned.
using AttentionSplitFn = void (*)(const AttentionArgs& args, int row_begin, int row_end,
                                  int kv_head, int split, int splits, float* partials,
                                  std::byte* scratch);
using AttentionMergeFn = void (*)(const AttentionArgs& args, int row_begin, int row_end,
                                  int kv_head, int splits, const float* partials);

// Prefill form: the final output of all query heads of kv_head for rows [row_begin, row_end) of ONE
// sequence, any number of rows in ascending positions. Work items (rows, kv_head) are independent;
// attention_prefill_rows(...) rows make a good item. scratch as above.
using AttentionPrefillFn = void (*)(const AttentionArgs& args, int row_begin, int row_end,
                                    int kv_head, std::byte* scratch);

// Splits that a sequence of `keys` positions takes.
[[nodiscard]] constexpr int attention_splits(std::int64_t keys) {
  return static_cast<int>((keys + kAttentionSplit - 1) / kAttentionSplit);
}
// Floats of the records of one decode group: per (row, head, split) a maximum, a sum and head_dim
// values of o.
[[nodiscard]] constexpr std::size_t attention_partial_floats(int rows, int heads, int head_dim,
                                                             int splits) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(heads) *
         static_cast<std::size_t>(splits) * static_cast<std::size_t>(head_dim + 8);
}
// Queries (rows times heads of a key head) that a kernel works on at once.
inline constexpr int kAttentionTileQueries = 48;
// Rows of a prefill work item.
[[nodiscard]] constexpr int attention_prefill_rows(int heads, int kv_heads) {
  const int group = heads / kv_heads;
  return group >= kAttentionTileQueries ? 1 : kAttentionTileQueries / group;
}
// Scratch of one thread, for both forms.
[[nodiscard]] std::size_t attention_scratch_bytes(int head_dim);

struct AttentionVariant {
  const char* name;
  CpuFeatures needs;
  AttentionSplitFn split;
  AttentionMergeFn merge;
  AttentionPrefillFn prefill;
};

// Fastest first; the last needs nothing (f64 sums of the reference: its bits differ from the fast
// ones).
[[nodiscard]] std::span<const AttentionVariant> attention_variants();

}  // namespace tern::cpu
