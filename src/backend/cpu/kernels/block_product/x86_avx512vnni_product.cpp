// block_product for AVX-512 VNNI: both blocks of a pair in one vector, dot products of bytes for
// single rows and of 16-bit pairs for many rows. Same integers and same sums as every other
// variant.
#if defined(__GNUC__) && !defined(__clang__)
// gcc 12 takes the undefined operands of its own AVX-512 intrinsics for our mistake.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/block_product/x86_avx2_block.h"

namespace tern::cpu {
namespace {

constexpr int kTileRows =
    12;  // activation rows that share a register tile: twice the latency of a dot product
constexpr int kPassRows = 36;   // activation rows per pass over the weights
constexpr int kSingleRows = 2;  // up to here the form for single rows is faster

enum class Kind { kQ4_0, kQ4_1, kQ8_0 };

template <Kind kKind>
struct Shape {
  static constexpr int kBytes = kKind == Kind::kQ4_0 ? 144 : kKind == Kind::kQ4_1 ? 160 : 272;
  static constexpr int kCodes = kKind == Kind::kQ4_1 ? 32 : 16;
};

inline __m512i word_at(const std::byte* bytes, int word) {
  return _mm512_set1_epi32(reinterpret_cast<const int*>(bytes)[word]);
}

// 32 bytes of block a below 32 bytes of block b.
inline __m512i load_pair(const std::byte* a, const std::byte* b) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(load_256(a)), load_256(b), 1);
}

// 8 halves of a below 8 of b, as floats.
inline __m512 load_scales(const std::byte* a, const std::byte* b) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b));
  return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
}

inline __m512i load_bytes(const std::byte* a, const std::byte* b) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b));
  return _mm512_cvtepi8_epi16(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
}

// sum + scale * dot, and the minimum's share: one step of the contract's chains.
template <Kind kKind>
inline void add_block(__m512i dot, const ActivationRow& x, std::int64_t k, __m512 d, __m512 m,
                      __m512& acc, __m512& minimum) {
  if constexpr (kKind == Kind::kQ4_0) dot = _mm512_sub_epi32(dot, _mm512_set1_epi32(8 * x.sum[k]));
  const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(x.scale[k]));
  acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, acc);
  if constexpr (kKind == Kind::kQ4_1)
    minimum = _mm512_fmadd_ps(m, _mm512_set1_ps(x.scaled_sum[k]), minimum);
}

// ---- single rows
// ----------------------------------------------------------------------------------------------------

// Codes 0..15 times hi in -128..127 and lo in 0..15; sums are 32 bits wide and cannot overflow.
inline __m512i dot_nibbles(const std::byte* a, const std::byte* b, const std::byte* hi,
                           const std::byte* lo) {
  const __m512i mask = _mm512_set1_epi8(15);
  __m512i hi_low = _mm512_setzero_si512(), hi_high = hi_low, lo_low = hi_low, lo_high = hi_low;
  for (int u = 0; u < 4; ++u) {
    const __m512i codes = load_pair(a + 32 * u, b + 32 * u);
    const __m512i low = _mm512_and_si512(codes, mask);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(codes, 4), mask);
    hi_low = _mm512_dpbusd_epi32(hi_low, low, word_at(hi, u));
    lo_low = _mm512_dpbusd_epi32(lo_low, low, word_at(lo, u));
    hi_high = _mm512_dpbusd_epi32(hi_high, high, word_at(hi, 4 + u));
    lo_high = _mm512_dpbusd_epi32(lo_high, high, word_at(lo, 4 + u));
  }
  const __m512i sixteenths = _mm512_slli_epi32(_mm512_add_epi32(hi_low, hi_high), 4);
  return _mm512_add_epi32(sixteenths, _mm512_add_epi32(lo_low, lo_high));
}

inline __m512i dot_bytes(const std::byte* a, const std::byte* b, const std::byte* q) {
  __m512i even = _mm512_setzero_si512(), odd = even;
  for (int u = 0; u < 16; u += 2) {
    even = _mm512_dpwssd_epi32(even, load_bytes(a + 16 * u, b + 16 * u), word_at(q, u));
    odd = _mm512_dpwssd_epi32(odd, load_bytes(a + 16 * u + 16, b + 16 * u + 16), word_at(q, u + 1));
  }
  return _mm512_add_epi32(even, odd);
}

// How far ahead weights are asked for (see x86_avx2_product.cpp).
inline std::int64_t prefetch_distance(std::int64_t row_bytes) {
  return row_bytes < 8192 ? 2 * row_bytes : 4096;
}

template <int kBytes>
inline void prefetch(const std::byte* from) {
  for (int i = 0; i < kBytes; i += 64)
    _mm_prefetch(reinterpret_cast<const char*>(from + i), _MM_HINT_T0);
}

template <Kind kKind>
__m512 single_row(const std::byte* a, const std::byte* b, const ActivationRow& x,
                  std::int64_t blocks) {
  __m512 acc = _mm512_setzero_ps(), minimum = acc, m = acc;
  const std::int64_t ahead = prefetch_distance(blocks * Shape<kKind>::kBytes);
  for (std::int64_t k = 0; k < blocks; ++k) {
    prefetch<Shape<kKind>::kBytes>(a + ahead);
    prefetch<Shape<kKind>::kBytes>(b + ahead);
    __m512i dot;
    if constexpr (kKind == Kind::kQ8_0) {
      dot = dot_bytes(a + 16, b + 16, x.q + 64 * k);
    } else {
      dot = dot_nibbles(a + Shape<kKind>::kCodes, b + Shape<kKind>::kCodes, x.hi + 32 * k,
                        x.lo + 32 * k);
    }
    if constexpr (kKind == Kind::kQ4_1) m = load_scales(a + 16, b + 16);
    add_block<kKind>(dot, x, k, load_scales(a, b), m, acc, minimum);
    a += Shape<kKind>::kBytes;
    b += Shape<kKind>::kBytes;
  }
  return kKind == Kind::kQ4_1 ? _mm512_add_ps(acc, minimum) : acc;
}

// ---- many rows
// ------------------------------------------------------------------------------------------------------

// 2 x 8 outputs x 32 inputs as 16 vectors of 16-bit pairs, in the order of the stored q.
template <Kind kKind>
inline void decode_pairs(const std::byte* a, const std::byte* b, __m512i* pairs) {
  if constexpr (kKind == Kind::kQ8_0) {
    for (int u = 0; u < 16; ++u) pairs[u] = load_bytes(a + 16 * u, b + 16 * u);
  } else {
    const __m512i mask = _mm512_set1_epi16(15);
    for (int u = 0; u < 4; ++u) {
      const __m512i codes = load_pair(a + 32 * u, b + 32 * u);
      pairs[2 * u] = _mm512_and_si512(codes, mask);
      pairs[2 * u + 1] = _mm512_and_si512(_mm512_srli_epi16(codes, 8), mask);
      pairs[8 + 2 * u] = _mm512_and_si512(_mm512_srli_epi16(codes, 4), mask);
      pairs[9 + 2 * u] = _mm512_srli_epi16(codes, 12);
    }
  }
}

// Integer sums of four rows; three calls make a tile. Named sums: arrays of vectors tend to end on
// the stack.
struct Four {
  __m512i r0, r1, r2, r3;
};
inline void dot_four(__m512i pair, const std::byte* const* q, int u, Four& sums) {
  sums.r0 = _mm512_dpwssd_epi32(sums.r0, pair, word_at(q[0], u));
  sums.r1 = _mm512_dpwssd_epi32(sums.r1, pair, word_at(q[1], u));
  sums.r2 = _mm512_dpwssd_epi32(sums.r2, pair, word_at(q[2], u));
  sums.r3 = _mm512_dpwssd_epi32(sums.r3, pair, word_at(q[3], u));
}
inline Four no_sums() {
  const __m512i zero = _mm512_setzero_si512();
  return {zero, zero, zero, zero};
}

// Chains of up to kPassRows rows, 2 x 8 outputs each.
struct PassSums {
  __m512 acc[kPassRows];
  __m512 minimum[kPassRows];
};

template <Kind kKind>
inline void add_four(const Four& sums, const ActivationRow* x, std::int64_t k, __m512 d, __m512 m,
                     __m512* acc, __m512* minimum) {
  add_block<kKind>(sums.r0, x[0], k, d, m, acc[0], minimum[0]);
  add_block<kKind>(sums.r1, x[1], k, d, m, acc[1], minimum[1]);
  add_block<kKind>(sums.r2, x[2], k, d, m, acc[2], minimum[2]);
  add_block<kKind>(sums.r3, x[3], k, d, m, acc[3], minimum[3]);
}

template <Kind kKind>
void pass(const std::byte* a, const std::byte* b, const ActivationRow* x, int rows,
          std::int64_t blocks, PassSums& total) {
  for (int t = 0; t < rows; ++t) total.acc[t] = total.minimum[t] = _mm512_setzero_ps();
  for (std::int64_t k = 0; k < blocks; ++k, a += Shape<kKind>::kBytes, b += Shape<kKind>::kBytes) {
    __m512i pairs[16];
    decode_pairs<kKind>(a + Shape<kKind>::kCodes, b + Shape<kKind>::kCodes, pairs);
    const __m512 d = load_scales(a, b);
    const __m512 m = kKind == Kind::kQ4_1 ? load_scales(a + 16, b + 16) : d;
    const std::byte* q[kPassRows];
    for (int t = 0; t < rows; ++t) q[t] = x[t].q + 64 * k;
    int t = 0;
    for (; t + kTileRows <= rows; t += kTileRows) {
      Four first = no_sums(), second = first, third = first;
      for (int u = 0; u < 16; ++u) {
        dot_four(pairs[u], q + t, u, first);
        dot_four(pairs[u], q + t + 4, u, second);
        dot_four(pairs[u], q + t + 8, u, third);
      }
      add_four<kKind>(first, x + t, k, d, m, total.acc + t, total.minimum + t);
      add_four<kKind>(second, x + t + 4, k, d, m, total.acc + t + 4, total.minimum + t + 4);
      add_four<kKind>(third, x + t + 8, k, d, m, total.acc + t + 8, total.minimum + t + 8);
    }
    for (; t + 4 <= rows; t += 4) {
      Four sums = no_sums();
      for (int u = 0; u < 16; ++u) dot_four(pairs[u], q + t, u, sums);
      add_four<kKind>(sums, x + t, k, d, m, total.acc + t, total.minimum + t);
    }
    for (; t < rows; ++t) {
      __m512i sum = _mm512_setzero_si512();
      for (int u = 0; u < 16; ++u) sum = _mm512_dpwssd_epi32(sum, pairs[u], word_at(q[t], u));
      add_block<kKind>(sum, x[t], k, d, m, total.acc[t], total.minimum[t]);
    }
  }
  if (kKind != Kind::kQ4_1) return;
  for (int t = 0; t < rows; ++t) total.acc[t] = _mm512_add_ps(total.acc[t], total.minimum[t]);
}

// ---- ranges
// ---------------------------------------------------------------------------------------------------------

// Two blocks of outputs at a time; a single last block is computed twice and stored once.
template <Kind kKind>
void product(const BlockProductArgs& args, int row_begin, int row_end, std::int64_t block_begin,
             std::int64_t block_end) {
  const std::int64_t blocks = args.w.inputs / kBlockInputs;
  const std::int64_t block_row_bytes = blocks * Shape<kKind>::kBytes;
  const bool is_single = row_end - row_begin <= kSingleRows;
  for (int first = row_begin; first < row_end; first += kPassRows) {
    const int rows = row_end - first < kPassRows ? row_end - first : kPassRows;
    ActivationRow x[kPassRows];
    for (int t = 0; t < rows; ++t) x[t] = activation_row(args.x, first + t);
    for (std::int64_t block = block_begin; block < block_end; block += 2) {
      const bool has_second = block + 1 < block_end;
      const std::byte* a = args.w.data + block * block_row_bytes;
      const std::byte* b = has_second ? a + block_row_bytes : a;
      PassSums total;
      if (is_single) {
        for (int t = 0; t < rows; ++t) total.acc[t] = single_row<kKind>(a, b, x[t], blocks);
      } else {
        pass<kKind>(a, b, x, rows, blocks, total);
      }
      for (int t = 0; t < rows; ++t) {
        store_outputs(args, first + t, block, _mm512_castps512_ps256(total.acc[t]));
        if (has_second)
          store_outputs(args, first + t, block + 1, _mm512_extractf32x8_ps(total.acc[t], 1));
      }
    }
  }
}

}  // namespace

void block_product_avx512vnni(const BlockProductArgs& args, int row_begin, int row_end,
                              std::int64_t block_begin, std::int64_t block_end) {
  switch (args.w.format) {
    case quant::Format::kQ4_0:
      return product<Kind::kQ4_0>(args, row_begin, row_end, block_begin, block_end);
    case quant::Format::kQ4_1:
      return product<Kind::kQ4_1>(args, row_begin, row_end, block_begin, block_end);
    default:
      return product<Kind::kQ8_0>(args, row_begin, row_end, block_begin, block_end);
  }
}

}  // namespace tern::cpu
