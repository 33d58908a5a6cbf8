// kv_store for AVX2 and F16C: eight values per step.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kv_store/kernels.h"

namespace tern::cpu {
namespace {

// What was seen, joined over all values.
struct Seen {
  __m256 not_finite = _mm256_setzero_ps();
  __m128i infinite_half = _mm_setzero_si128();  // Inf or NaN as f16, from a finite value
};

// count is a multiple of 8.
void store_values(const float* from, std::byte* to, int count, bool is_f16, Seen& seen) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  const __m256 infinity = _mm256_castsi256_ps(_mm256_set1_epi32(0x7F800000));
  for (int i = 0; i < count; i += 8) {
    const __m256 value = _mm256_loadu_ps(from + i);
    const __m256 bad = _mm256_cmp_ps(_mm256_and_ps(value, magnitude), infinity, _CMP_NLT_UQ);
    seen.not_finite = _mm256_or_ps(seen.not_finite, bad);
    if (!is_f16) {
      _mm256_storeu_ps(reinterpret_cast<float*>(to) + i, value);
      continue;
    }
    const __m128i half = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i), half);
    const __m128i exponent = _mm_set1_epi16(0x7C00);
    const __m128i special = _mm_cmpeq_epi16(_mm_and_si128(half, exponent), exponent);
    const __m256i bad_lanes = _mm256_castps_si256(bad);
    const __m128i was_bad =
        _mm_packs_epi32(_mm256_castsi256_si128(bad_lanes), _mm256_extracti128_si256(bad_lanes, 1));
    seen.infinite_half = _mm_or_si128(seen.infinite_half, _mm_andnot_si128(was_bad, special));
  }
}

}  // namespace

std::uint32_t kv_store_avx2(const KvStoreArgs& args, int row_begin, int row_end) {
  const KvView& kv = args.kv;
  const auto run = static_cast<std::size_t>(kv.head_dim);
  const std::size_t k_bytes = run * (kv.dtype_k == KvDtype::kF16 ? 2 : 4);
  const std::size_t v_bytes = run * (kv.dtype_v == KvDtype::kF16 ? 2 : 4);
  Seen seen;
  for (int r = row_begin; r < row_end; ++r) {
    const std::int32_t position = args.positions[r];
    if (position < 0) continue;
    const std::uint64_t page = args.pages[r][position / kKvPagePositions] * kv.page_stride_bytes;
    const auto slot = static_cast<std::size_t>(position % kKvPagePositions);
    for (int h = 0; h < kv.kv_heads; ++h) {
      const std::size_t line = static_cast<std::size_t>(h) * kKvPagePositions + slot;
      const std::int64_t column = static_cast<std::int64_t>(h) * kv.head_dim;
      store_values(args.k + r * args.k_row_stride + column, kv.k_base + page + line * k_bytes,
                   kv.head_dim, kv.dtype_k == KvDtype::kF16, seen);
      store_values(args.v + r * args.v_row_stride + column, kv.v_base + page + line * v_bytes,
                   kv.head_dim, kv.dtype_v == KvDtype::kF16, seen);
    }
  }
  std::uint32_t result = 0;
  if (_mm256_movemask_ps(seen.not_finite) != 0) result |= kKvStoreNotFinite;
  if (_mm_movemask_epi8(seen.infinite_half) != 0) result |= kKvStoreOverflow;
  return result;
}

}  // namespace tern::cpu
