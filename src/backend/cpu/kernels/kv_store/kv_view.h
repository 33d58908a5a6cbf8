// How keys and values lie in the pages of the KV pool, as kernels see them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tern::cpu {

inline constexpr int kKvPagePositions = 32;

enum class KvDtype : std::uint8_t { kF32, kF16 };

[[nodiscard]] constexpr std::size_t kv_element_bytes(KvDtype dtype) {
  return dtype == KvDtype::kF32 ? 4 : 2;
}

// The keys and values of one layer. Page p starts at k_base + p * page_stride_bytes (64-bit
// arithmetic) and holds [kv_head][32][head_dim] elements of dtype_k; values likewise at v_base.
// Bases and stride are multiples of 32 bytes. Position t of a sequence lies in slot t % 32 of page
// pages[t / 32] of that sequence's page table.
struct KvView {
  std::byte* k_base = nullptr;
  std::byte* v_base = nullptr;
  std::uint64_t page_stride_bytes = 0;
  KvDtype dtype_k = KvDtype::kF16;
  KvDtype dtype_v = KvDtype::kF16;
  int kv_heads = 0;
  int head_dim = 0;  // a multiple of 8
};

// Bytes of one page of one layer's keys (or values).
[[nodiscard]] constexpr std::uint64_t kv_page_bytes(KvDtype dtype, int kv_heads, int head_dim) {
  return static_cast<std::uint64_t>(kv_heads) * static_cast<std::uint64_t>(kKvPagePositions) *
         static_cast<std::uint64_t>(head_dim) * kv_element_bytes(dtype);
}

}  // namespace tern::cpu
