// kv_store and the paged cache that attention reads: pages of 32 positions, [kv_head][32][head_dim]
// in f32 or f16.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tern::reference {

// Page p starts at base + p * page_stride_bytes; position t is slot t % 32 of page pages[t / 32].
struct KvPlane {
  std::byte* base = nullptr;
  std::uint64_t page_stride_bytes = 0;
  bool is_f16 = false;
  int kv_heads = 0;
  int head_dim = 0;
};

[[nodiscard]] float kv_load(const KvPlane& plane, const std::uint32_t* pages, std::int64_t position,
                            int kv_head, int d);

enum class KvStored { kAsItIs, kOverflowed, kNotFinite };

// Rounds to nearest even where the plane is f16.
KvStored kv_store(const KvPlane& plane, const std::uint32_t* pages, std::int64_t position,
                  int kv_head, int d, float value);

}  // namespace tern::reference
