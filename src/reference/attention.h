// attention: softmax(q k^T * scale) v of one query over the first `keys` positions of a paged
// cache, in f64.
#pragma once

#include <cstdint>

#include "reference/kv_cache.h"

namespace tern::reference {

inline constexpr int kAttentionHeadDim = 512;  // at most

// out[d] for d < head_dim (at most 512). No key, or only scores of -Inf: zeros.
void attention(const KvPlane& k, const KvPlane& v, const std::uint32_t* pages, int kv_head,
               std::int64_t keys, float scale, const float* q, float* out);

}  // namespace tern::reference
