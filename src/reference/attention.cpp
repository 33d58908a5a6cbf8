// The scalar formulas of attention, written for reading.
#include "reference/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tern::reference {
namespace {

double score(const KvPlane& k, const std::uint32_t* pages, int kv_head, std::int64_t t, float scale,
             const float* q) {
  double sum = 0;
  for (int d = 0; d < k.head_dim; ++d) {
    sum += static_cast<double>(q[d]) * static_cast<double>(kv_load(k, pages, t, kv_head, d));
  }
  return sum * static_cast<double>(scale);
}

}  // namespace

void attention(const KvPlane& k, const KvPlane& v, const std::uint32_t* pages, int kv_head,
               std::int64_t keys, float scale, const float* q, float* out) {
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t t = 0; t < keys; ++t) {
    const double s = score(k, pages, kv_head, t, scale, q);
    if (s > largest) largest = s;
  }
  std::array<double, kAttentionHeadDim> o{};
  double total = 0;
  for (std::int64_t t = 0; t < keys; ++t) {
    const double s = score(k, pages, kv_head, t, scale, q);
    if (s == -std::numeric_limits<double>::infinity()) continue;  // weight 0
    const double p = std::exp(s - largest);
    total += p;
    for (int d = 0; d < v.head_dim; ++d) {
      o[static_cast<std::size_t>(d)] += p * static_cast<double>(kv_load(v, pages, t, kv_head, d));
    }
  }
  for (int d = 0; d < v.head_dim; ++d) {
    out[d] = total == 0 ? 0.0F : static_cast<float>(o[static_cast<std::size_t>(d)] / total);
  }
}

}  // namespace tern::reference
