// block_product for AVX2 with 12-bit activations: a form for single rows that multiplies bytes (hi
// and lo apart), and a form for many rows that decodes the weights once to 16-bit integers.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/block_product/x86_avx2_block.h"

namespace tern::cpu {
namespace {

constexpr int kTileRows = 4;    // activation rows that share a register tile
constexpr int kPassRows = 32;   // activation rows per pass over the weights
constexpr int kSingleRows = 3;  // up to here the form for single rows is faster

enum class Kind { kQ4_0, kQ4_1, kQ8_0 };

template <Kind kKind>
struct Shape {
  static constexpr int kBytes = kKind == Kind::kQ4_0 ? 144 : kKind == Kind::kQ4_1 ? 160 : 272;
  static constexpr int kCodes = kKind == Kind::kQ4_1 ? 32 : 16;
};

inline __m256i word_at(const std::byte* bytes, int word) {
  return _mm256_set1_epi32(reinterpret_cast<const int*>(bytes)[word]);
}

// ---- single rows
// ----------------------------------------------------------------------------------------------------

// One vector of nibbles times hi and lo. hi is -128..127 and codes are 0..15, so a pair sum is at
// most 3,840 and eight of them (one block of 32 inputs) at most 30,720; lo gives at most 450 and
// 3,600.
inline void multiply_nibbles(__m256i nibbles, __m256i hi, __m256i lo, __m256i& hi_sum,
                             __m256i& lo_sum) {
  hi_sum = _mm256_add_epi16(hi_sum, _mm256_maddubs_epi16(nibbles, hi));
  lo_sum = _mm256_add_epi16(lo_sum, _mm256_maddubs_epi16(nibbles, lo));
  keep(hi_sum);
  keep(lo_sum);
}

inline __m256i join_hi_lo(__m256i hi_sum, __m256i lo_sum) {
  return _mm256_add_epi32(_mm256_madd_epi16(hi_sum, _mm256_set1_epi16(16)),
                          _mm256_madd_epi16(lo_sum, _mm256_set1_epi16(1)));
}

// Integer sums of 2 x 8 outputs over 32 inputs.
struct Sums {
  __m256i a, b;
};

inline Sums dot_nibbles(const std::byte* a, const std::byte* b, const std::byte* hi,
                        const std::byte* lo) {
  const __m256i mask = _mm256_set1_epi8(15);
  __m256i ah = _mm256_setzero_si256(), al = ah, bh = ah, bl = ah;
  for (int u = 0; u < 4; ++u) {
    const __m256i codes_a = load_256(a + 32 * u);
    const __m256i codes_b = load_256(b + 32 * u);
    __m256i h = word_at(hi, u);
    __m256i l = word_at(lo, u);
    multiply_nibbles(_mm256_and_si256(codes_a, mask), h, l, ah, al);
    multiply_nibbles(_mm256_and_si256(codes_b, mask), h, l, bh, bl);
    h = word_at(hi, 4 + u);
    l = word_at(lo, 4 + u);
    multiply_nibbles(_mm256_and_si256(_mm256_srli_epi16(codes_a, 4), mask), h, l, ah, al);
    multiply_nibbles(_mm256_and_si256(_mm256_srli_epi16(codes_b, 4), mask), h, l, bh, bl);
  }
  return {join_hi_lo(ah, al), join_hi_lo(bh, bl)};
}

inline __m256i load_bytes(const std::byte* from) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// |q w| <= 2,047 * 128, so 32 of them stay below 2^24: exact in int32 and in float.
inline Sums dot_bytes(const std::byte* a, const std::byte* b, const std::byte* q) {
  __m256i sum_a = _mm256_setzero_si256(), sum_b = sum_a;
  for (int u = 0; u < 16; ++u) {
    const __m256i x = word_at(q, u);
    sum_a = _mm256_add_epi32(sum_a, _mm256_madd_epi16(load_bytes(a + 16 * u), x));
    sum_b = _mm256_add_epi32(sum_b, _mm256_madd_epi16(load_bytes(b + 16 * u), x));
    keep(sum_a);
    keep(sum_b);
  }
  return {sum_a, sum_b};
}

// How far ahead weights are asked for: a short row ends before the processor's own prefetcher has
// learnt its stream, so the next pair of rows is named (2 rows further); long rows need a few KiB.
inline std::int64_t prefetch_distance(std::int64_t row_bytes) {
  return row_bytes < 8192 ? 2 * row_bytes : 4096;
}

template <int kBytes>
inline void prefetch(const std::byte* from) {
  for (int i = 0; i < kBytes; i += 64)
    _mm_prefetch(reinterpret_cast<const char*>(from + i), _MM_HINT_T0);
}

// 2 x 8 outputs of one row.
template <Kind kKind>
void single_row(const std::byte* a, const std::byte* b, const ActivationRow& x, std::int64_t blocks,
                __m256* out_a, __m256* out_b) {
  __m256 acc_a = _mm256_setzero_ps(), acc_b = acc_a, min_a = acc_a, min_b = acc_a;
  const std::int64_t ahead = prefetch_distance(blocks * Shape<kKind>::kBytes);
  for (std::int64_t k = 0; k < blocks; ++k) {
    prefetch<Shape<kKind>::kBytes>(a + ahead);
    prefetch<Shape<kKind>::kBytes>(b + ahead);
    Sums sums;
    if constexpr (kKind == Kind::kQ8_0) {
      sums = dot_bytes(a + 16, b + 16, x.q + 64 * k);
    } else {
      sums = dot_nibbles(a + Shape<kKind>::kCodes, b + Shape<kKind>::kCodes, x.hi + 32 * k,
                         x.lo + 32 * k);
    }
    if constexpr (kKind == Kind::kQ4_0) {
      const __m256i offset = _mm256_set1_epi32(8 * x.sum[k]);
      sums.a = _mm256_sub_epi32(sums.a, offset);
      sums.b = _mm256_sub_epi32(sums.b, offset);
    }
    const __m256 scale = _mm256_broadcast_ss(x.scale + k);
    acc_a =
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums.a), _mm256_mul_ps(load_halves(a), scale), acc_a);
    acc_b =
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums.b), _mm256_mul_ps(load_halves(b), scale), acc_b);
    if constexpr (kKind == Kind::kQ4_1) {
      const __m256 scaled_sum = _mm256_broadcast_ss(x.scaled_sum + k);
      min_a = _mm256_fmadd_ps(load_halves(a + 16), scaled_sum, min_a);
      min_b = _mm256_fmadd_ps(load_halves(b + 16), scaled_sum, min_b);
    }
    a += Shape<kKind>::kBytes;
    b += Shape<kKind>::kBytes;
  }
  *out_a = kKind == Kind::kQ4_1 ? _mm256_add_ps(acc_a, min_a) : acc_a;
  *out_b = kKind == Kind::kQ4_1 ? _mm256_add_ps(acc_b, min_b) : acc_b;
}

// ---- many rows
// ------------------------------------------------------------------------------------------------------

// 8 outputs x 32 inputs as 16 vectors of 16-bit pairs, in the order of the stored q.
template <Kind kKind>
inline void decode_pairs(const std::byte* codes, __m256i* pairs) {
  if constexpr (kKind == Kind::kQ8_0) {
    for (int u = 0; u < 16; ++u) pairs[u] = load_bytes(codes + 16 * u);
  } else {
    const __m256i mask = _mm256_set1_epi16(15);
    for (int u = 0; u < 4; ++u) {
      const __m256i v = load_256(codes + 32 * u);
      pairs[2 * u] = _mm256_and_si256(v, mask);
      pairs[2 * u + 1] = _mm256_and_si256(_mm256_srli_epi16(v, 8), mask);
      pairs[8 + 2 * u] = _mm256_and_si256(_mm256_srli_epi16(v, 4), mask);
      pairs[9 + 2 * u] = _mm256_srli_epi16(v, 12);
    }
  }
}

// Integer sums of kRows (1 to 4) activation rows against 2 x 8 outputs; sums[2t], sums[2t + 1]
// belong to row t.
template <int kRows>
inline void dot_tile(const __m256i* a, const __m256i* b, const std::byte* const* q, __m256i* sums) {
  __m256i a0 = _mm256_setzero_si256(), a1 = a0, a2 = a0, a3 = a0;
  __m256i b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  const std::byte* q0 = q[0];
  const std::byte* q1 = q[kRows > 1 ? 1 : 0];
  const std::byte* q2 = q[kRows > 2 ? 2 : 0];
  const std::byte* q3 = q[kRows > 3 ? 3 : 0];
  for (int u = 0; u < 16; ++u) {
    const __m256i wa = a[u];
    const __m256i wb = b[u];
    __m256i x = word_at(q0, u);
    a0 = _mm256_add_epi32(a0, _mm256_madd_epi16(wa, x));
    b0 = _mm256_add_epi32(b0, _mm256_madd_epi16(wb, x));
    keep(a0);
    keep(b0);
    if constexpr (kRows > 1) {
      x = word_at(q1, u);
      a1 = _mm256_add_epi32(a1, _mm256_madd_epi16(wa, x));
      b1 = _mm256_add_epi32(b1, _mm256_madd_epi16(wb, x));
      keep(a1);
      keep(b1);
    }
    if constexpr (kRows > 2) {
      x = word_at(q2, u);
      a2 = _mm256_add_epi32(a2, _mm256_madd_epi16(wa, x));
      b2 = _mm256_add_epi32(b2, _mm256_madd_epi16(wb, x));
      keep(a2);
      keep(b2);
    }
    if constexpr (kRows > 3) {
      x = word_at(q3, u);
      a3 = _mm256_add_epi32(a3, _mm256_madd_epi16(wa, x));
      b3 = _mm256_add_epi32(b3, _mm256_madd_epi16(wb, x));
      keep(a3);
      keep(b3);
    }
  }
  sums[0] = a0;
  sums[1] = b0;
  if constexpr (kRows > 1) {
    sums[2] = a1;
    sums[3] = b1;
  }
  if constexpr (kRows > 2) {
    sums[4] = a2;
    sums[5] = b2;
  }
  if constexpr (kRows > 3) {
    sums[6] = a3;
    sums[7] = b3;
  }
}

// Sums of 2 x 8 outputs for up to kPassRows rows: [row][a, b].
struct PassSums {
  __m256 acc[kPassRows][2];
  __m256 minimum[kPassRows][2];
};

template <Kind kKind>
inline void add_block(const __m256i* sums, const ActivationRow& x, std::int64_t k, const __m256* d,
                      const __m256* m, __m256* acc, __m256* minimum) {
  const __m256 scale = _mm256_broadcast_ss(x.scale + k);
  __m256i a = sums[0];
  __m256i b = sums[1];
  if constexpr (kKind == Kind::kQ4_0) {
    const __m256i offset = _mm256_set1_epi32(8 * x.sum[k]);
    a = _mm256_sub_epi32(a, offset);
    b = _mm256_sub_epi32(b, offset);
  }
  acc[0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(a), _mm256_mul_ps(d[0], scale), acc[0]);
  acc[1] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(b), _mm256_mul_ps(d[1], scale), acc[1]);
  if constexpr (kKind == Kind::kQ4_1) {
    const __m256 scaled_sum = _mm256_broadcast_ss(x.scaled_sum + k);
    minimum[0] = _mm256_fmadd_ps(m[0], scaled_sum, minimum[0]);
    minimum[1] = _mm256_fmadd_ps(m[1], scaled_sum, minimum[1]);
  }
}

template <Kind kKind, int kRows>
inline void tile_block(const __m256i (*pairs)[16], const ActivationRow* x, std::int64_t k,
                       const __m256* d, const __m256* m, __m256 (*acc)[2], __m256 (*minimum)[2]) {
  const std::byte* q[kRows];
  for (int t = 0; t < kRows; ++t) q[t] = x[t].q + 64 * k;
  __m256i sums[2 * kRows];
  dot_tile<kRows>(pairs[0], pairs[1], q, sums);
  for (int t = 0; t < kRows; ++t) add_block<kKind>(sums + 2 * t, x[t], k, d, m, acc[t], minimum[t]);
}

template <Kind kKind>
void pass(const std::byte* a, const std::byte* b, const ActivationRow* x, int rows,
          std::int64_t blocks, PassSums& total) {
  for (int t = 0; t < rows; ++t) {
    total.acc[t][0] = total.acc[t][1] = _mm256_setzero_ps();
    total.minimum[t][0] = total.minimum[t][1] = _mm256_setzero_ps();
  }
  for (std::int64_t k = 0; k < blocks; ++k, a += Shape<kKind>::kBytes, b += Shape<kKind>::kBytes) {
    __m256i pairs[2][16];
    decode_pairs<kKind>(a + Shape<kKind>::kCodes, pairs[0]);
    decode_pairs<kKind>(b + Shape<kKind>::kCodes, pairs[1]);
    const __m256 d[2] = {load_halves(a), load_halves(b)};
    __m256 m[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    if constexpr (kKind == Kind::kQ4_1) {
      m[0] = load_halves(a + 16);
      m[1] = load_halves(b + 16);
    }
    int t = 0;
    for (; t + kTileRows <= rows; t += kTileRows) {
      tile_block<kKind, kTileRows>(pairs, x + t, k, d, m, total.acc + t, total.minimum + t);
    }
    for (; t < rows; ++t) {
      tile_block<kKind, 1>(pairs, x + t, k, d, m, total.acc + t, total.minimum + t);
    }
  }
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
  const int step = is_single ? kSingleRows : kPassRows;
  for (int first = row_begin; first < row_end; first += step) {
    const int rows = row_end - first < step ? row_end - first : step;
    ActivationRow x[kPassRows];
    for (int t = 0; t < rows; ++t) x[t] = activation_row(args.x, first + t);
    for (std::int64_t block = block_begin; block < block_end; block += 2) {
      const bool has_second = block + 1 < block_end;
      const std::byte* a = args.w.data + block * block_row_bytes;
      const std::byte* b = has_second ? a + block_row_bytes : a;
      PassSums total;
      if (is_single) {
        for (int t = 0; t < rows; ++t) {
          single_row<kKind>(a, b, x[t], blocks, &total.acc[t][0], &total.acc[t][1]);
        }
      } else {
        pass<kKind>(a, b, x, rows, blocks, total);
      }
      for (int t = 0; t < rows; ++t) {
        __m256 sum_a = total.acc[t][0];
        __m256 sum_b = total.acc[t][1];
        if (kKind == Kind::kQ4_1 && !is_single) {
          sum_a = _mm256_add_ps(sum_a, total.minimum[t][0]);
          sum_b = _mm256_add_ps(sum_b, total.minimum[t][1]);
        }
        store_outputs(args, first + t, block, sum_a);
        if (has_second) store_outputs(args, first + t, block + 1, sum_b);
      }
    }
  }
}

}  // namespace

void block_product_avx2(const BlockProductArgs& args, int row_begin, int row_end,
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
