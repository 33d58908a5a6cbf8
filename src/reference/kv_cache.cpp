// The scalar formulas of kv_cache, written for reading.
#include "reference/kv_cache.h"

#include <cmath>
#include <cstring>

#include "base/half.h"

namespace tern::reference {
namespace {

std::byte* element(const KvPlane& plane, const std::uint32_t* pages, std::int64_t position,
                   int kv_head, int d) {
  const std::uint64_t bytes = plane.is_f16 ? 2 : 4;
  const std::uint64_t slot = static_cast<std::uint64_t>(position % 32);
  const std::uint64_t index = (static_cast<std::uint64_t>(kv_head) * 32 + slot) *
                                  static_cast<std::uint64_t>(plane.head_dim) +
                              static_cast<std::uint64_t>(d);
  return plane.base + pages[position / 32] * plane.page_stride_bytes + index * bytes;
}

}  // namespace

float kv_load(const KvPlane& plane, const std::uint32_t* pages, std::int64_t position, int kv_head,
              int d) {
  const std::byte* from = element(plane, pages, position, kv_head, d);
  if (plane.is_f16) {
    std::uint16_t half = 0;
    std::memcpy(&half, from, sizeof half);
    return half_to_float(half);
  }
  float value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

KvStored kv_store(const KvPlane& plane, const std::uint32_t* pages, std::int64_t position,
                  int kv_head, int d, float value) {
  std::byte* to = element(plane, pages, position, kv_head, d);
  if (!plane.is_f16) {
    std::memcpy(to, &value, sizeof value);
    return std::isfinite(value) ? KvStored::kAsItIs : KvStored::kNotFinite;
  }
  const std::uint16_t half = float_to_half(value);
  std::memcpy(to, &half, sizeof half);
  if (!std::isfinite(value)) return KvStored::kNotFinite;
  return (half & 0x7FFF) == 0x7C00 ? KvStored::kOverflowed : KvStored::kAsItIs;
}

}  // namespace tern::reference
