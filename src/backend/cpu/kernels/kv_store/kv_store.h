// kv_store: writes rows of keys and values into the pages of their sequences.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cpu/kernels/kv_store/kv_view.h"
#include "base/cpu_features.h"

namespace tern::cpu {

struct KvStoreArgs {
  KvView kv;
  const float* k = nullptr;  // [rows][kv_heads * head_dim]
  std::int64_t k_row_stride = 0;
  const float* v = nullptr;  // [rows][kv_heads * head_dim]
  std::int64_t v_row_stride = 0;
  const std::uint32_t* const* pages = nullptr;  // [rows] page table of the row's sequence
  const std::int32_t* positions = nullptr;      // [rows]; a row with a negative position is skipped
};

// Bits of the result.
inline constexpr std::uint32_t kKvStoreOverflow =
    1;  // a finite value does not fit f16 and became Inf
inline constexpr std::uint32_t kKvStoreNotFinite =
    2;  // a value was NaN or Inf already; stored as it is

// Stores rows [row_begin, row_end); f32 -> f16 rounds to nearest even (class E for every variant).
// Two rows of one call or of concurrent calls never have the same (sequence, position). Returns the
// bits above, joined over the rows. Threads: any split of rows.
using KvStoreFn = std::uint32_t (*)(const KvStoreArgs& args, int row_begin, int row_end);

struct KvStoreVariant {
  const char* name;
  CpuFeatures needs;
  KvStoreFn run;
};

// Fastest first; the last needs nothing.
[[nodiscard]] std::span<const KvStoreVariant> kv_store_variants();

}  // namespace tern::cpu
