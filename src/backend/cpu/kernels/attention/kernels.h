// The functions behind the table of attention: one group per instruction set.
#pragma once

#include "backend/cpu/kernels/attention/attention.h"

namespace tern::cpu {

// The parts of a thread's scratch, as offsets in floats.
struct AttentionScratch {
  std::size_t page = 0;     // [32][head_dim] a page of keys or values as f32
  std::size_t scores = 0;   // [queries][256] scores, then probabilities
  std::size_t split = 0;    // [queries][8 + head_dim] the records of one split
  std::size_t running = 0;  // [queries][8 + head_dim] the merged records
  std::size_t floats = 0;
};
AttentionScratch attention_scratch(int head_dim);

void attention_split_reference(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                               int split, int splits, float* partials, std::byte* scratch);
void attention_merge_reference(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                               int splits, const float* partials);
void attention_prefill_reference(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                                 std::byte* scratch);

void attention_split_avx2(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                          int split, int splits, float* partials, std::byte* scratch);
void attention_merge_avx2(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                          int splits, const float* partials);
void attention_prefill_avx2(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                            std::byte* scratch);

}  // namespace tern::cpu
