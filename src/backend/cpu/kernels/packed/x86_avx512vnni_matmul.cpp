// `lut512`, AVX-512: a word permute answers for 32 rows at once what five activations sum to under
// a pattern of five bits, or three activations under three ternary weights. A 16-bit sum holds 15
// or 16 inputs of at most 2047 (32,752 <= 32,767); a dot product with (1, 0) or (0, 1) then adds
// the even or the odd rows to 32-bit sums.
#include "backend/cpu/kernels/packed/x86.h"
#include "backend/cpu/kernels/packed/x86_avx512.h"

namespace tern::cpu {
namespace {

#define TERN_INLINE [[gnu::always_inline]] inline

constexpr std::int64_t kChunk = 512;             // inputs of one chain of additions
constexpr std::int64_t kSubsetBytes = 13 * 64;   // of tables per 64 inputs
constexpr std::int64_t kTernaryBytes = 22 * 64;  // of tables per 64 inputs
constexpr std::int64_t kL2Bytes =
    1024 * 1024;  // weights of the blocks that all tokens pass before the next ones
constexpr std::int64_t kMaxBlocks = 64;  // and how many blocks that may be: bounds the scratch
constexpr int kTokens = 4;               // that share the extraction of the indices
constexpr int kSharedBlocks = 2;         // that share the loads of tables when there is one token

static_assert(kMaxBlocks * kTokens * 32 * 4 <= static_cast<std::int64_t>(kPackedScratchBytes));

// One activation row within a chunk.
struct Activations {
  const std::byte* table;
  const float* a;
  const std::int32_t* sums;
  float* total;  // 32 sums per row block: 16 of the even rows, 16 of the odd rows
};

TERN_INLINE __m512i load(const std::byte* p) { return _mm512_load_si512(p); }

// Additions stay in the order in which they are written: trees of them do not fit into the
// registers.
TERN_INLINE __m512i keep(__m512i v) {
  asm("" : "+v"(v));
  return v;
}

// As a test, not as a move of the sign bits: that would take the port of the shifts.
TERN_INLINE __mmask32 top_bits(__m512i v) {
  return _mm512_test_epi16_mask(v, _mm512_set1_epi16(static_cast<short>(0x8000)));
}

// 32-bit sums of 32 rows for T tokens.
template <int T>
struct Sums {
  __m512i even, odd;
  Sums<T - 1> rest;
};
template <>
struct Sums<0> {};

// 16-bit sums of 32 rows for T tokens.
template <int T>
struct Words {
  __m512i v;
  Words<T - 1> rest;
};
template <>
struct Words<0> {};

template <bool First, int T>
TERN_INLINE void look_up(Words<T>& n, const Activations* t, std::int64_t at, __m512i index) {
  if constexpr (T > 0) {
    const __m512i found = _mm512_permutexvar_epi16(index, load(t->table + at));
    n.v = First ? found : keep(_mm512_add_epi16(n.v, found));
    look_up<First>(n.rest, t + 1, at, index);
  }
}

TERN_INLINE __m512i broadcast_pair(const std::byte* p) {
  return _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(p));
}

template <int T>
TERN_INLINE void add_masked(Words<T>& n, const Activations* t, std::int64_t at, __mmask32 rows) {
  if constexpr (T > 0) {
    n.v = keep(_mm512_mask_add_epi16(n.v, rows, n.v, broadcast_pair(t->table + at)));
    add_masked(n.rest, t + 1, at, rows);
  }
}
template <int T>
TERN_INLINE void subtract_masked(Words<T>& n, const Activations* t, std::int64_t at,
                                 __mmask32 rows) {
  if constexpr (T > 0) {
    n.v = keep(_mm512_mask_sub_epi16(n.v, rows, n.v, broadcast_pair(t->table + at)));
    subtract_masked(n.rest, t + 1, at, rows);
  }
}

// sums += Factor * words.
template <int Factor, int T>
TERN_INLINE void widen(Sums<T>& s, const Words<T>& n) {
  if constexpr (T > 0) {
    s.even = _mm512_dpwssd_epi32(s.even, n.v, _mm512_set1_epi32(Factor));
    s.odd = _mm512_dpwssd_epi32(s.odd, n.v, _mm512_set1_epi32(Factor * 65536));
    widen<Factor>(s.rest, n.rest);
  }
}

template <int Group>
TERN_INLINE std::int32_t sum_of(const Activations& t, std::int64_t g) {
  return Group == 64 ? t.sums[g] : t.sums[2 * g] + t.sums[2 * g + 1];
}

// From 0, or from minus the sum of q, for the codes whose value is code * 2 - 1 or code - 1.
template <PackedKind K, int Group, int T>
TERN_INLINE void start(Sums<T>& s, const Activations* t, std::int64_t g) {
  if constexpr (T > 0) {
    s.even = K == PackedKind::kTernary ? _mm512_setzero_si512()
                                       : _mm512_set1_epi32(-sum_of<Group>(*t, g));
    s.odd = s.even;
    start<K, Group>(s.rest, t + 1, g);
  }
}

// 16 inputs under one plane of bits.
template <int Factor, int T>
TERN_INLINE void add_word(Sums<T>& s, const std::byte* w, const Activations* t, std::int64_t at,
                          int word) {
  Words<T> n;
  const __m512i bits = load(w);
  look_up<true>(n, t, at + word * 192, bits);
  look_up<false>(n, t, at + word * 192 + 64, _mm512_srli_epi16(bits, 5));
  look_up<false>(n, t, at + word * 192 + 128, _mm512_srli_epi16(bits, 10));
  add_masked(n, t, at + 12 * 64 + 4 * word, top_bits(bits));
  widen<Factor>(s, n);
}

// 64 ternary inputs: seven words with three triples each, input 63 in the top bits of words 0
// and 1. Five triples are 15 inputs, a last one and input 63 are four.
template <int T>
TERN_INLINE void add_ternary(Sums<T>& s, const std::byte* w, const Activations* t,
                             std::int64_t at) {
  Words<T> n;
  __mmask32 plus = 0;
  __mmask32 minus = 0;
#pragma GCC unroll 21
  for (int triple = 0; triple < 21; ++triple) {
    const __m512i word = load(w + triple / 3 * 64);
    const __m512i index = triple % 3 == 0   ? word
                          : triple % 3 == 1 ? _mm512_srli_epi16(word, 5)
                                            : _mm512_srli_epi16(word, 10);
    if (triple == 0) plus = top_bits(word);
    if (triple == 3) minus = top_bits(word);
    if (triple % 5 == 0) {
      look_up<true>(n, t, at + triple * 64, index);
    } else {
      look_up<false>(n, t, at + triple * 64, index);
    }
    if (triple % 5 == 4) widen<1>(s, n);
  }
  add_masked(n, t, at + 21 * 64, plus);
  subtract_masked(n, t, at + 21 * 64, minus);
  widen<1>(s, n);
}

// The integers of one group of one row block.
template <PackedKind K, int Group, int T>
TERN_INLINE void group_sums(Sums<T>& s, const std::byte* codes, const Activations* t,
                            std::int64_t g) {
  start<K, Group>(s, t, g);
  std::int64_t at = g * (Group / 64) * (K == PackedKind::kTernary ? kTernaryBytes : kSubsetBytes);
#pragma GCC unroll 2
  for (int half = 0; half < Group / 64; ++half) {
    if constexpr (K == PackedKind::kTernary) {
      add_ternary(s, codes, t, at);
      codes += 7 * 64;
      at += kTernaryBytes;
    } else {
#pragma GCC unroll 4
      for (int word = 0; word < 4; ++word) {
        if constexpr (K == PackedKind::kBinary) {
          add_word<2>(s, codes, t, at, word);
          codes += 64;
        } else {
          add_word<1>(s, codes, t, at, word);
          add_word<2>(s, codes + 64, t, at, word);
          codes += 128;
        }
      }
      at += kSubsetBytes;
    }
  }
}

template <int T>
struct Accumulators {
  __m512 even, odd;
  Accumulators<T - 1> rest;
};
template <>
struct Accumulators<0> {};

template <int T>
TERN_INLINE void clear(Accumulators<T>& acc) {
  if constexpr (T > 0) {
    acc.even = acc.odd = _mm512_setzero_ps();
    clear(acc.rest);
  }
}

template <int Group, int T>
TERN_INLINE void accumulate(Accumulators<T>& acc, const Sums<T>& s, const Activations* t,
                            std::int64_t g, __m512 even_scales, __m512 odd_scales) {
  if constexpr (T > 0) {
    const __m512 a = _mm512_set1_ps(t->a[g * Group / 128]);
    acc.even = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s.even), _mm512_mul_ps(even_scales, a), acc.even);
    acc.odd = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s.odd), _mm512_mul_ps(odd_scales, a), acc.odd);
    accumulate<Group>(acc.rest, s.rest, t + 1, g, even_scales, odd_scales);
  }
}

template <PackedKind K, int Group, int T>
TERN_INLINE void add_group(Accumulators<T>& acc, const std::byte* w, const Activations* t,
                           std::int64_t g) {
  Sums<T> s;
  group_sums<K, Group>(s, w + 64, t, g);
  const auto* scales = reinterpret_cast<const __m256i*>(w);
  accumulate<Group>(acc, s, t, g, _mm512_cvtph_ps(_mm256_load_si256(scales)),
                    _mm512_cvtph_ps(_mm256_load_si256(scales + 1)));
}

template <int T>
TERN_INLINE void add_or_set(const Activations* t, std::int64_t block, const Accumulators<T>& acc,
                            bool first) {
  if constexpr (T > 0) {
    float* total = t->total + block * 32;
    if (first) {
      _mm512_store_ps(total, acc.even);
      _mm512_store_ps(total + 16, acc.odd);
    } else {
      _mm512_store_ps(total, _mm512_add_ps(_mm512_load_ps(total), acc.even));
      _mm512_store_ps(total + 16, _mm512_add_ps(_mm512_load_ps(total + 16), acc.odd));
    }
    add_or_set(t + 1, block, acc.rest, first);
  }
}

template <PackedKind K, int Group>
constexpr std::int64_t kGroupBytes = 64 + (K == PackedKind::kBinary    ? 512
                                           : K == PackedKind::kTernary ? Group / 64 * 7 * 64
                                                                       : Group * 8);

template <std::int64_t Bytes>
TERN_INLINE void prefetch(const std::byte* p) {
#pragma GCC unroll 20
  for (std::int64_t line = 0; line < Bytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(p + line), _MM_HINT_T0);
  }
}

// One chunk of one row block for T tokens: the chain of fused multiply-adds of the chunk, then one
// addition. `ahead`: how far in front of the weights to prefetch, in bytes.
struct ChunkArgs {
  const std::byte* weights;
  std::int64_t row_block_bytes;
  std::int64_t groups;
  std::int64_t ahead;
  bool first;
};

template <PackedKind K, int Group, int T>
void chunk_kernel(const ChunkArgs& args, const Activations* tokens) {
  Activations t[T];
  for (int i = 0; i < T; ++i) t[i] = tokens[i];
  Accumulators<T> acc;
  clear(acc);
  const std::byte* w = args.weights;
  for (std::int64_t g = 0; g < args.groups; ++g, w += kGroupBytes<K, Group>) {
    prefetch<kGroupBytes<K, Group>>(w + args.ahead);
    add_group<K, Group>(acc, w, t, g);
  }
  add_or_set<T>(tokens, 0, acc, args.first);
}

// The same for one token and two neighbouring row blocks, which share the loads of the tables.
template <PackedKind K, int Group>
void two_block_kernel(const ChunkArgs& args, const Activations* tokens) {
  const Activations t = tokens[0];
  Accumulators<1> acc0;
  Accumulators<1> acc1;
  clear(acc0);
  clear(acc1);
  const std::byte* w0 = args.weights;
  const std::byte* w1 = w0 + args.row_block_bytes;
  constexpr std::int64_t kBytes = kGroupBytes<K, Group>;
  for (std::int64_t g = 0; g < args.groups; ++g, w0 += kBytes, w1 += kBytes) {
    prefetch<kBytes>(w0 + args.ahead);
    prefetch<kBytes>(w1 + args.ahead);
    add_group<K, Group>(acc0, w0, &t, g);
    add_group<K, Group>(acc1, w1, &t, g);
  }
  add_or_set<1>(tokens, 0, acc0, args.first);
  add_or_set<1>(tokens, 1, acc1, args.first);
}

using ChunkFn = void (*)(const ChunkArgs&, const Activations*);

struct Kernels {
  ChunkFn tokens[kTokens];
  ChunkFn two_blocks;
};

template <PackedKind K, int Group>
constexpr Kernels kKernels = {{chunk_kernel<K, Group, 1>, chunk_kernel<K, Group, 2>,
                               chunk_kernel<K, Group, 3>, chunk_kernel<K, Group, 4>},
                              two_block_kernel<K, Group>};

const Kernels& kernels_for(const PackedView& w) {
  if (w.kind == PackedKind::kBinary) return kKernels<PackedKind::kBinary, 128>;
  if (w.kind == PackedKind::kTernary) {
    return w.group == 64 ? kKernels<PackedKind::kTernary, 64> : kKernels<PackedKind::kTernary, 128>;
  }
  return w.group == 64 ? kKernels<PackedKind::kCodes, 64> : kKernels<PackedKind::kCodes, 128>;
}

// y of one row block and token from its 32 sums.
void store_block(const PackedMatmulArgs& args, std::int64_t row, std::int64_t block,
                 const float* total) {
  const std::int64_t n = block * kPackedBlockRows;
  float* y = args.y + row * args.y_stride + n;
  const float* residual =
      args.residual == nullptr ? nullptr : args.residual + row * args.residual_stride + n;
  const __m512 even = _mm512_load_ps(total);
  const __m512 odd = _mm512_load_ps(total + 16);
  const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i high =
      _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
  __m512 v0 = _mm512_permutex2var_ps(even, low, odd);
  __m512 v1 = _mm512_permutex2var_ps(even, high, odd);
  const std::int64_t left = args.weights.rows - n;
  const std::uint32_t rows = left >= 32 ? 0xffffffffu : (std::uint32_t{1} << left) - 1;
  const auto rows0 = static_cast<__mmask16>(rows & 0xffff);
  const auto rows1 = static_cast<__mmask16>(rows >> 16);
  if (residual != nullptr) {
    v0 = _mm512_add_ps(_mm512_maskz_loadu_ps(rows0, residual), v0);
    v1 = _mm512_add_ps(_mm512_maskz_loadu_ps(rows1, residual + 16), v1);
  }
  _mm512_mask_storeu_ps(y, rows0, v0);
  _mm512_mask_storeu_ps(y + 16, rows1, v1);
}

// Row blocks [begin, end) for `count` tokens from `row`: chunk by chunk, so that the tables of a
// chunk stay in L1.
void multiply_tile(const PackedMatmulArgs& args, const Kernels& kernels, std::int64_t row,
                   int count, std::int64_t begin, std::int64_t end) {
  const PackedView& w = args.weights;
  const RecordsView& records = args.records;
  const bool ternary = w.kind == PackedKind::kTernary;
  const std::int64_t table_offset =
      ternary ? records.ternary_table_offset : records.subset_table_offset;
  auto* totals = reinterpret_cast<float*>(args.scratch);
  const std::int64_t blocks = end - begin;
  const std::int64_t chunk_groups = kChunk / w.group;
  const bool stream = blocks <= kSharedBlocks;  // the weights are read once, in one or two streams
  ChunkArgs chunk{};
  chunk.row_block_bytes = w.row_block_bytes;
  for (std::int64_t g = 0; g < w.groups; g += chunk_groups) {
    const std::int64_t half = g * w.group / 64;
    Activations t[kTokens];
    for (int i = 0; i < count; ++i) {
      const std::byte* record = records.data + (row + i) * records.record_bytes;
      t[i].table = record + table_offset + half * (ternary ? kTernaryBytes : kSubsetBytes);
      t[i].a = reinterpret_cast<const float*>(record + records.scales_offset) + half / 2;
      t[i].sums = reinterpret_cast<const std::int32_t*>(record + records.sums_offset) + half;
    }
    chunk.groups = w.groups - g < chunk_groups ? w.groups - g : chunk_groups;
    chunk.first = g == 0;
    for (std::int64_t b = 0; b < blocks;) {
      chunk.weights = w.data + (begin + b) * w.row_block_bytes + g * w.group_bytes;
      for (int i = 0; i < count; ++i) t[i].total = totals + (i * blocks + b) * 32;
      if (count == 1 && b + kSharedBlocks <= blocks) {
        chunk.ahead = stream ? 2048 : kSharedBlocks * w.row_block_bytes;
        kernels.two_blocks(chunk, t);
        b += kSharedBlocks;
      } else {
        chunk.ahead = stream ? 2048 : w.row_block_bytes;
        kernels.tokens[count - 1](chunk, t);
        ++b;
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      store_block(args, row + i, begin + b, totals + (i * blocks + b) * 32);
    }
  }
}

}  // namespace

void avx512_matmul(const PackedMatmulArgs& args) {
  const PackedView& w = args.weights;
  if (w.groups == 0) {
    alignas(64) const float zeros[32] = {};
    for (std::int64_t row = 0; row < args.rows; ++row) {
      for (std::int64_t b = args.block_begin; b < args.block_end; ++b) {
        store_block(args, row, b, zeros);
      }
    }
    return;
  }
  const Kernels& kernels = kernels_for(w);
  std::int64_t tile = kSharedBlocks;  // row blocks
  if (args.rows > 1) {
    tile = kL2Bytes / w.row_block_bytes;
    if (tile < 4) tile = 4;
    if (tile > kMaxBlocks) tile = kMaxBlocks;
  }
  for (std::int64_t begin = args.block_begin; begin < args.block_end; begin += tile) {
    const std::int64_t end = begin + tile < args.block_end ? begin + tile : args.block_end;
    for (std::int64_t row = 0; row < args.rows; row += kTokens) {
      const std::int64_t left = args.rows - row;
      multiply_tile(args, kernels, row, left < kTokens ? static_cast<int>(left) : kTokens, begin,
                    end);
    }
  }
}

}  // namespace tern::cpu
