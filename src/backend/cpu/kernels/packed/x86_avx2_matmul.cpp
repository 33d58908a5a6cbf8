// `lut`, AVX2: a byte shuffle answers for 32 rows at once what four activations sum to under a
// pattern of four bits.
//
// A sum of four 12-bit integers, plus 8192, has 14 bits: three tables hold its bits 0-4, 5-9 and
// 10-13, and the answers are added up as bytes l, m, h. l and m are joined to 16 bits, h is
// widened, before a byte can overflow.
#include <immintrin.h>

#include "backend/cpu/kernels/packed/x86.h"

namespace tern::cpu {
namespace {

#define TERN_INLINE [[gnu::always_inline]] inline

constexpr std::int64_t kChunk = 512;      // inputs of one chain of additions
constexpr std::int64_t kStepTables = 96;  // bytes of tables for the eight inputs of a step
constexpr std::int64_t kL2Bytes =
    224 * 1024;  // weights of the blocks that all tokens pass before the next ones
constexpr std::int64_t kMaxBlocks = 32;  // and how many blocks that may be: bounds the scratch
constexpr int kTokens = 4;               // that share the extraction of the indices

static_assert(kMaxBlocks * kTokens * 32 * 4 <= static_cast<std::int64_t>(kPackedScratchBytes));

// One activation row within a chunk.
struct Activations {
  const std::byte* table;
  const float* a;
  const std::int32_t* sums;
  float* total;  // 32 sums, in the order of the vectors
};

TERN_INLINE __m256i broadcast_table(const std::byte* p) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
}
TERN_INLINE __m256i load(const std::byte* p) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
}

// Byte counters of T tokens. A struct of named members: arrays of vectors would go to the stack.
template <int T>
struct Bytes {
  __m256i l, m, h;
  Bytes<T - 1> rest;
};
template <>
struct Bytes<0> {};

// 16-bit sums of T tokens: a, b of l + 32 m, ha, hb of h; a and ha for rows 0-7 and 16-23, b and hb
// for the others.
template <int T>
struct Sums {
  __m256i a, b, ha, hb;
  Sums<T - 1> rest;
};
template <>
struct Sums<0> {};

// Additions stay in the order in which they are written: gcc would make trees of them, whose leaves
// do not fit into the registers (88 instead of 115 billion weights a second).
TERN_INLINE __m256i keep(__m256i v) {
  asm("" : "+x"(v));
  return v;
}

TERN_INLINE __m256i count(__m256i counter, const std::byte* table, __m256i index) {
  return keep(_mm256_add_epi8(counter, _mm256_shuffle_epi8(broadcast_table(table), index)));
}
TERN_INLINE __m256i count(__m256i counter, const std::byte* table, __m256i plus, __m256i minus) {
  const __m256i t = broadcast_table(table);
  counter = keep(_mm256_add_epi8(counter, _mm256_shuffle_epi8(t, plus)));
  return keep(_mm256_sub_epi8(counter, _mm256_shuffle_epi8(t, minus)));
}

// Four inputs. `index`: one nibble per row, or one for the weights +1 and one for the weights -1.
template <int T, class... Index>
TERN_INLINE void look_up(Bytes<T>& n, const Activations* t, std::int64_t at, Index... index) {
  if constexpr (T > 0) {
    n.l = count(n.l, t->table + at, index...);
    n.m = count(n.m, t->table + at + 16, index...);
    n.h = count(n.h, t->table + at + 32, index...);
    look_up(n.rest, t + 1, at, index...);
  }
}

template <int T>
TERN_INLINE void clear_low(Bytes<T>& n) {
  if constexpr (T > 0) {
    n.l = _mm256_setzero_si256();
    n.m = _mm256_setzero_si256();
    clear_low(n.rest);
  }
}
template <int T>
TERN_INLINE void clear_high(Bytes<T>& n) {
  if constexpr (T > 0) {
    n.h = _mm256_setzero_si256();
    clear_high(n.rest);
  }
}
template <int T>
TERN_INLINE void clear(Sums<T>& s) {
  if constexpr (T > 0) {
    s.a = s.b = s.ha = s.hb = _mm256_setzero_si256();
    clear(s.rest);
  }
}

// Signed says whether the counters are signed bytes.
template <bool Signed, int T>
TERN_INLINE void widen_low(Sums<T>& s, const Bytes<T>& n) {
  if constexpr (T > 0) {
    const __m256i factors = _mm256_set1_epi16(0x2001);  // 1 for l, 32 for m
    const __m256i lo = _mm256_unpacklo_epi8(n.l, n.m);
    const __m256i hi = _mm256_unpackhi_epi8(n.l, n.m);
    if constexpr (Signed) {
      s.a = _mm256_add_epi16(s.a, _mm256_maddubs_epi16(factors, lo));
      s.b = _mm256_add_epi16(s.b, _mm256_maddubs_epi16(factors, hi));
    } else {
      s.a = _mm256_add_epi16(s.a, _mm256_maddubs_epi16(lo, factors));
      s.b = _mm256_add_epi16(s.b, _mm256_maddubs_epi16(hi, factors));
    }
    widen_low<Signed>(s.rest, n.rest);
  }
}
template <bool Signed, int T>
TERN_INLINE void widen_high(Sums<T>& s, const Bytes<T>& n) {
  if constexpr (T > 0) {
    const __m256i zero = _mm256_setzero_si256();
    if constexpr (Signed) {
      const __m256i lo = _mm256_unpacklo_epi8(zero, n.h);
      const __m256i hi = _mm256_unpackhi_epi8(zero, n.h);
      s.ha = _mm256_add_epi16(s.ha, _mm256_srai_epi16(lo, 8));
      s.hb = _mm256_add_epi16(s.hb, _mm256_srai_epi16(hi, 8));
    } else {
      s.ha = _mm256_add_epi16(s.ha, _mm256_unpacklo_epi8(n.h, zero));
      s.hb = _mm256_add_epi16(s.hb, _mm256_unpackhi_epi8(n.h, zero));
    }
    widen_high<Signed>(s.rest, n.rest);
  }
}

TERN_INLINE __m256i low_nibbles(__m256i q) { return _mm256_and_si256(q, _mm256_set1_epi8(15)); }
TERN_INLINE __m256i high_nibbles(__m256i q) {
  return _mm256_and_si256(_mm256_srli_epi16(q, 4), _mm256_set1_epi8(15));
}

// One plane of bits, 64 inputs: eight steps, `stride` bytes apart. l and m take 8 answers of at
// most 31 (248), h 16 of at most 15 (240). Per 64 inputs a grows by at most 2 * (248 + 32 * 248) =
// 16,368, so twice by 32,736.
template <int T>
TERN_INLINE void add_plane(Sums<T>& s, const std::byte* w, std::int64_t stride,
                           const Activations* t, std::int64_t at) {
  Bytes<T> n;
  clear_high(n);
  for (int round = 0; round < 2; ++round) {
    clear_low(n);
#pragma GCC unroll 4
    for (int step = 0; step < 4; ++step, w += stride, at += kStepTables) {
      const __m256i q = load(w);
      look_up(n, t, at, low_nibbles(q));
      look_up(n, t, at + kStepTables / 2, high_nibbles(q));
    }
    widen_low<false>(s, n);
  }
  widen_high<false>(s, n);
}

// Planes of +1 and -1, 64 inputs. Signed counters: l and m take two steps (4 * 31 = 124 either
// way), h four (8 * 15 = 120). a moves by at most 124 * 33 = 4,092 per round, eight rounds in a
// group of 128: 32,736.
template <int T>
TERN_INLINE void add_signed_planes(Sums<T>& s, const std::byte* w, const Activations* t,
                                   std::int64_t at) {
  for (int part = 0; part < 2; ++part) {
    Bytes<T> n;
    clear_high(n);
#pragma GCC unroll 2
    for (int round = 0; round < 2; ++round) {
      clear_low(n);
#pragma GCC unroll 2
      for (int step = 0; step < 2; ++step, w += 64, at += kStepTables) {
        look_up(n, t, at, low_nibbles(load(w)), low_nibbles(load(w + 32)));
        look_up(n, t, at + kStepTables / 2, high_nibbles(load(w)), high_nibbles(load(w + 32)));
      }
      widen_low<true>(s, n);
    }
    widen_high<true>(s, n);
  }
}

// What the tables give for 32 rows, as 4 vectors of 32-bit integers: vector j has rows 4j..4j+3 and
// 16+4j..16+4j+3.
struct Integers {
  __m256i v0, v1, v2, v3;
};

template <int T>
TERN_INLINE Integers join(const Sums<T>& s) {
  const __m256i factors = _mm256_set1_epi32(1024 * 65536 + 1);  // 1 for l + 32 m, 1024 for h
  return {_mm256_madd_epi16(_mm256_unpacklo_epi16(s.a, s.ha), factors),
          _mm256_madd_epi16(_mm256_unpackhi_epi16(s.a, s.ha), factors),
          _mm256_madd_epi16(_mm256_unpacklo_epi16(s.b, s.hb), factors),
          _mm256_madd_epi16(_mm256_unpackhi_epi16(s.b, s.hb), factors)};
}
TERN_INLINE Integers add(const Integers& x, const Integers& y) {
  return {_mm256_add_epi32(x.v0, y.v0), _mm256_add_epi32(x.v1, y.v1), _mm256_add_epi32(x.v2, y.v2),
          _mm256_add_epi32(x.v3, y.v3)};
}
TERN_INLINE Integers add(const Integers& x, std::int32_t offset) {
  const __m256i o = _mm256_set1_epi32(offset);
  return add(x, Integers{o, o, o, o});
}

struct Floats {
  __m256 v0, v1, v2, v3;
};
template <int T>
struct Accumulators {
  Floats sum;
  Accumulators<T - 1> rest;
};
template <>
struct Accumulators<0> {};

template <int T>
TERN_INLINE void clear(Accumulators<T>& acc) {
  if constexpr (T > 0) {
    acc.sum.v0 = acc.sum.v1 = acc.sum.v2 = acc.sum.v3 = _mm256_setzero_ps();
    clear(acc.rest);
  }
}

TERN_INLINE __m256 accumulate(__m256 acc, __m256i integer, const std::byte* scales, __m256 a) {
  const __m256 d = _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(scales)));
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(integer), _mm256_mul_ps(d, a), acc);
}

TERN_INLINE void accumulate(Floats& acc, const Integers& integers, const std::byte* scales,
                            float a) {
  const __m256 va = _mm256_set1_ps(a);
  acc.v0 = accumulate(acc.v0, integers.v0, scales, va);
  acc.v1 = accumulate(acc.v1, integers.v1, scales + 16, va);
  acc.v2 = accumulate(acc.v2, integers.v2, scales + 32, va);
  acc.v3 = accumulate(acc.v3, integers.v3, scales + 48, va);
}

// Sum of q over weight group g of the chunk.
template <int Group>
TERN_INLINE std::int32_t sum_of(const Activations& t, std::int64_t g) {
  return Group == 64 ? t.sums[g] : t.sums[2 * g] + t.sums[2 * g + 1];
}

// Binary: I = 2 S - sum, S = answers - 8192 per table.
template <int T>
TERN_INLINE void finish_binary(Accumulators<T>& acc, const Sums<T>& s, const Activations* t,
                               std::int64_t g, const std::byte* scales) {
  if constexpr (T > 0) {
    const Integers once = join(s);
    const Integers twice = add(once, once);
    accumulate(acc.sum, add(twice, -2 * 32 * 8192 - sum_of<128>(*t, g)), scales, t->a[g]);
    finish_binary(acc.rest, s.rest, t + 1, g, scales);
  }
}
template <int Group, int T>
TERN_INLINE void finish_ternary(Accumulators<T>& acc, const Sums<T>& s, const Activations* t,
                                std::int64_t g, const std::byte* scales) {
  if constexpr (T > 0) {
    accumulate(acc.sum, join(s), scales, t->a[g * Group / 128]);
    finish_ternary<Group>(acc.rest, s.rest, t + 1, g, scales);
  }
}
// Codes: I = S0 + 2 S1 - sum.
template <int Group, int T>
TERN_INLINE void finish_codes(Accumulators<T>& acc, const Sums<T>& s0, const Sums<T>& s1,
                              const Activations* t, std::int64_t g, const std::byte* scales) {
  if constexpr (T > 0) {
    const Integers high = join(s1);
    const Integers sum = add(join(s0), add(high, high));
    accumulate(acc.sum, add(sum, -3 * (Group / 4) * 8192 - sum_of<Group>(*t, g)), scales,
               t->a[g * Group / 128]);
    finish_codes<Group>(acc.rest, s0.rest, s1.rest, t + 1, g, scales);
  }
}

template <PackedKind K, int Group, int T>
TERN_INLINE void add_group(Accumulators<T>& acc, const std::byte* w, const Activations* t,
                           std::int64_t g) {
  constexpr std::int64_t kHalfTables = 8 * kStepTables;  // of 64 inputs
  const std::int64_t at = g * (Group / 64) * kHalfTables;
  const std::byte* codes = w + 64;
  Sums<T> s;
  clear(s);
  if constexpr (K == PackedKind::kBinary) {
    add_plane(s, codes, 32, t, at);
    add_plane(s, codes + 256, 32, t, at + kHalfTables);
    finish_binary(acc, s, t, g, w);
  } else if constexpr (K == PackedKind::kTernary) {
    add_signed_planes(s, codes, t, at);
    if constexpr (Group == 128) add_signed_planes(s, codes + 512, t, at + kHalfTables);
    finish_ternary<Group>(acc, s, t, g, w);
  } else {
    Sums<T> s1;
    clear(s1);
    add_plane(s, codes, 64, t, at);
    add_plane(s1, codes + 32, 64, t, at);
    if constexpr (Group == 128) {
      add_plane(s, codes + 512, 64, t, at + kHalfTables);
      add_plane(s1, codes + 544, 64, t, at + kHalfTables);
    }
    finish_codes<Group>(acc, s, s1, t, g, w);
  }
}

TERN_INLINE void add_or_set(float* total, const Floats& sum, bool first) {
  if (first) {
    _mm256_store_ps(total, sum.v0);
    _mm256_store_ps(total + 8, sum.v1);
    _mm256_store_ps(total + 16, sum.v2);
    _mm256_store_ps(total + 24, sum.v3);
    return;
  }
  _mm256_store_ps(total, _mm256_add_ps(_mm256_load_ps(total), sum.v0));
  _mm256_store_ps(total + 8, _mm256_add_ps(_mm256_load_ps(total + 8), sum.v1));
  _mm256_store_ps(total + 16, _mm256_add_ps(_mm256_load_ps(total + 16), sum.v2));
  _mm256_store_ps(total + 24, _mm256_add_ps(_mm256_load_ps(total + 24), sum.v3));
}
template <int T>
TERN_INLINE void add_or_set(const Activations* t, const Accumulators<T>& acc, bool first) {
  if constexpr (T > 0) {
    add_or_set(t->total, acc.sum, first);
    add_or_set(t + 1, acc.rest, first);
  }
}

template <PackedKind K, int Group>
constexpr std::int64_t kGroupBytes = 64 + Group*(K == PackedKind::kBinary ? 4 : 8);

template <std::int64_t Bytes>
TERN_INLINE void prefetch(const std::byte* p) {
#pragma GCC unroll 20
  for (std::int64_t line = 0; line < Bytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(p + line), _MM_HINT_T0);
  }
}

// One chunk of one row block for T tokens: the chain of fused multiply-adds of the chunk, then one
// addition. `ahead`: how far in front of the weights to prefetch, in bytes.
template <PackedKind K, int Group, int T>
void chunk_kernel(const std::byte* w, std::int64_t groups, std::int64_t ahead,
                  const Activations* tokens, bool first) {
  Activations t[T];
  for (int i = 0; i < T; ++i) t[i] = tokens[i];
  Accumulators<T> acc;
  clear(acc);
  for (std::int64_t g = 0; g < groups; ++g, w += kGroupBytes<K, Group>) {
    prefetch<kGroupBytes<K, Group>>(w + ahead);
    add_group<K, Group>(acc, w, t, g);
  }
  add_or_set<T>(tokens, acc, first);
}

using ChunkFn = void (*)(const std::byte*, std::int64_t, std::int64_t, const Activations*, bool);

template <PackedKind K, int Group>
constexpr ChunkFn kChunkKernels[kTokens] = {chunk_kernel<K, Group, 1>, chunk_kernel<K, Group, 2>,
                                            chunk_kernel<K, Group, 3>, chunk_kernel<K, Group, 4>};

const ChunkFn* chunk_kernels(const PackedView& w) {
  if (w.kind == PackedKind::kBinary) return kChunkKernels<PackedKind::kBinary, 128>;
  if (w.kind == PackedKind::kTernary) {
    return w.group == 64 ? kChunkKernels<PackedKind::kTernary, 64>
                         : kChunkKernels<PackedKind::kTernary, 128>;
  }
  return w.group == 64 ? kChunkKernels<PackedKind::kCodes, 64>
                       : kChunkKernels<PackedKind::kCodes, 128>;
}

// y of one row block and token from its 32 sums.
void store_block(const PackedMatmulArgs& args, std::int64_t row, std::int64_t block,
                 const float* total) {
  const std::int64_t n = block * kPackedBlockRows;
  float* y = args.y + row * args.y_stride + n;
  const float* residual =
      args.residual == nullptr ? nullptr : args.residual + row * args.residual_stride + n;
  if (n + kPackedBlockRows <= args.weights.rows) {
    for (int i = 0; i < 8; ++i) {
      __m128 v = _mm_load_ps(total + i % 4 * 8 + i / 4 * 4);
      if (residual != nullptr) v = _mm_add_ps(_mm_loadu_ps(residual + 4 * i), v);
      _mm_storeu_ps(y + 4 * i, v);
    }
    return;
  }
  for (std::int64_t r = 0; r < args.weights.rows - n; ++r) {
    const float v = total[r % 16 / 4 * 8 + r / 16 * 4 + r % 4];
    y[r] = residual == nullptr ? v : residual[r] + v;
  }
}

// Row blocks [begin, end) for `count` tokens from `row`: chunk by chunk, so that the tables of a
// chunk stay in L1.
void multiply_tile(const PackedMatmulArgs& args, const ChunkFn* kernels, std::int64_t row,
                   int count, std::int64_t begin, std::int64_t end) {
  const PackedView& w = args.weights;
  const RecordsView& records = args.records;
  auto* totals = reinterpret_cast<float*>(args.scratch);
  const std::int64_t blocks = end - begin;
  const std::int64_t chunk_groups = kChunk / w.group;
  for (std::int64_t g = 0; g < w.groups; g += chunk_groups) {
    const std::int64_t groups = w.groups - g < chunk_groups ? w.groups - g : chunk_groups;
    const std::int64_t half = g * w.group / 64;
    Activations t[kTokens];
    for (int i = 0; i < count; ++i) {
      const std::byte* record = records.data + (row + i) * records.record_bytes;
      t[i].table = record + records.subset_table_offset + half * (8 * kStepTables);
      t[i].a = reinterpret_cast<const float*>(record + records.scales_offset) + half / 2;
      t[i].sums = reinterpret_cast<const std::int32_t*>(record + records.sums_offset) + half;
    }
    // One block: the weights are one stream. Several: the next piece is in the next block.
    const std::int64_t ahead = blocks == 1 ? 2048 : w.row_block_bytes;
    const std::byte* codes = w.data + begin * w.row_block_bytes + g * w.group_bytes;
    for (std::int64_t b = 0; b < blocks; ++b, codes += w.row_block_bytes) {
      for (int i = 0; i < count; ++i) t[i].total = totals + (i * blocks + b) * 32;
      kernels[count - 1](codes, groups, ahead, t, g == 0);
    }
  }
  for (int i = 0; i < count; ++i) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      store_block(args, row + i, begin + b, totals + (i * blocks + b) * 32);
    }
  }
}

}  // namespace

void avx2_matmul(const PackedMatmulArgs& args) {
  const PackedView& w = args.weights;
  if (w.groups == 0) {
    alignas(32) const float zeros[32] = {};
    for (std::int64_t row = 0; row < args.rows; ++row) {
      for (std::int64_t b = args.block_begin; b < args.block_end; ++b) {
        store_block(args, row, b, zeros);
      }
    }
    return;
  }
  const ChunkFn* kernels = chunk_kernels(w);
  std::int64_t tile = 1;  // row blocks
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
