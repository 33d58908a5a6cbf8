// attention in portable code: the reference, query by query; the decode form does all of its work
// in the merge.
#include "backend/cpu/kernels/attention/kernels.h"
#include "reference/attention.h"

namespace tern::cpu {
namespace {

void attend(const AttentionArgs& args, int row_begin, int row_end, int kv_head) {
  const KvView& kv = args.kv;
  const reference::KvPlane k{kv.k_base, kv.page_stride_bytes, kv.dtype_k == KvDtype::kF16,
                             kv.kv_heads, kv.head_dim};
  const reference::KvPlane v{kv.v_base, kv.page_stride_bytes, kv.dtype_v == KvDtype::kF16,
                             kv.kv_heads, kv.head_dim};
  const int group = args.heads / kv.kv_heads;
  for (int r = row_begin; r < row_end; ++r) {
    for (int g = 0; g < group; ++g) {
      const std::int64_t column = static_cast<std::int64_t>(kv_head * group + g) * kv.head_dim;
      const std::int64_t keys = args.positions[r] < 0 ? 0 : std::int64_t{args.positions[r]} + 1;
      reference::attention(k, v, args.pages[r], kv_head, keys, args.scale,
                           args.q + r * args.q_row_stride + column,
                           args.out + r * args.out_row_stride + column);
    }
  }
}

}  // namespace

AttentionScratch attention_scratch(int head_dim) {
  const auto width = static_cast<std::size_t>(head_dim);
  const auto queries = static_cast<std::size_t>(kAttentionTileQueries);
  AttentionScratch s;
  s.page = 0;
  s.scores = s.page + static_cast<std::size_t>(kKvPagePositions) * width;
  s.split = s.scores + queries * static_cast<std::size_t>(kAttentionSplit);
  s.running = s.split + queries * (width + 8);
  s.floats = s.running + queries * (width + 8);
  return s;
}

std::size_t attention_scratch_bytes(int head_dim) {
  return (attention_scratch(head_dim).floats * sizeof(float) + 63) / 64 * 64;
}

void attention_split_reference(const AttentionArgs& /*args*/, int /*row_begin*/, int /*row_end*/,
                               int /*kv_head*/, int /*split*/, int /*splits*/, float* /*partials*/,
                               std::byte* /*scratch*/) {}

void attention_merge_reference(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                               int /*splits*/, const float* /*partials*/) {
  attend(args, row_begin, row_end, kv_head);
}

void attention_prefill_reference(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                                 std::byte* /*scratch*/) {
  attend(args, row_begin, row_end, kv_head);
}

}  // namespace tern::cpu
