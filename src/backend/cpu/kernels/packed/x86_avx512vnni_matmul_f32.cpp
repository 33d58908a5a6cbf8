// Float activations with packed weights, AVX-512: a float permute answers for 16 rows what four
// activations sum to under a pattern of four bits, or three activations under three ternary
// weights. Class F; the reference path of the CPU.
#include "backend/cpu/kernels/packed/x86.h"
#include "backend/cpu/kernels/packed/x86_avx512.h"

namespace tern::cpu {
namespace {

#define TERN_INLINE [[gnu::always_inline]] inline

constexpr std::int64_t kChunk = 512;     // inputs whose tables are built at a time
constexpr std::int64_t kMaxBlocks = 32;  // row blocks that share the tables
constexpr int kTokens = 4;               // that share the extraction of the indices
constexpr std::int64_t kSubsetFloats =
    16 * 16;  // of tables per 64 inputs: 16 tables of four inputs
constexpr std::int64_t kTernaryFloats = 21 * 32 + 16;  // 21 tables of three inputs, and input 63

// The tables of one token and chunk, and its plain sums.
struct Tables {
  alignas(64) float entries[kChunk / 64 * kTernaryFloats];
  float sums[kChunk / 64];
};

// How the scratch is used.
struct Scratch {
  Tables tables[kTokens];
  alignas(64) float totals[kTokens][kMaxBlocks][kPackedBlockRows];
};
static_assert(sizeof(Scratch) <= kPackedScratchBytes);

void build_subsets(const float* x, float* out) {
  for (int table = 0; table < 16; ++table, x += 4) {
    const __m512 t0 = _mm512_maskz_mov_ps(0xaaaa, _mm512_set1_ps(x[0]));
    const __m512 t1 = _mm512_maskz_mov_ps(0xcccc, _mm512_set1_ps(x[1]));
    const __m512 t2 = _mm512_maskz_mov_ps(0xf0f0, _mm512_set1_ps(x[2]));
    const __m512 t3 = _mm512_maskz_mov_ps(0xff00, _mm512_set1_ps(x[3]));
    _mm512_store_ps(out + table * 16, _mm512_add_ps(_mm512_add_ps(t0, t1), _mm512_add_ps(t2, t3)));
  }
}

// Entry c0 + 3 c1 + 9 c2 is the sum of (c - 1) x over three inputs.
void build_triples(const float* x, float* out) {
  for (int table = 0; table < 21; ++table, x += 3, out += 32) {
    for (int c = 0; c < 27; ++c) {
      const float x0 = static_cast<float>(c % 3 - 1) * x[0];
      const float x1 = static_cast<float>(c / 3 % 3 - 1) * x[1];
      const float x2 = static_cast<float>(c / 9 - 1) * x[2];
      out[c] = x0 + x1 + x2;
    }
    for (int c = 27; c < 32; ++c) out[c] = 0.0f;
  }
  out[0] = x[0];
}

void build_tables(const float* x, std::int64_t inputs, bool ternary, Tables& tables) {
  for (std::int64_t half = 0; half < inputs / 64; ++half, x += 64) {
    float sum = 0.0f;
    for (int k = 0; k < 64; ++k) sum += x[k];
    tables.sums[half] = sum;
    if (ternary) {
      build_triples(x, tables.entries + half * kTernaryFloats);
    } else {
      build_subsets(x, tables.entries + half * kSubsetFloats);
    }
  }
}

// Sums of 32 rows for T tokens.
template <int T>
struct Sums {
  __m512 even, odd;
  Sums<T - 1> rest;
};
template <>
struct Sums<0> {};

template <int T>
TERN_INLINE void clear(Sums<T>& s) {
  if constexpr (T > 0) {
    s.even = s.odd = _mm512_setzero_ps();
    clear(s.rest);
  }
}

TERN_INLINE __m512 four_of(const float* table, __m512i index) {
  return _mm512_permutexvar_ps(index, _mm512_load_ps(table));
}
TERN_INLINE __m512 triple_of(const float* table, __m512i index) {
  return _mm512_permutex2var_ps(_mm512_load_ps(table), index, _mm512_load_ps(table + 16));
}

// Sixteen inputs: bits 0-15 of a double word belong to an even row, 16-31 to the odd row after it.
template <int T>
TERN_INLINE void look_up_bits(Sums<T>& s, const Tables* t, std::int64_t at, __m512i bits) {
  if constexpr (T > 0) {
    const float* table = t->entries + at;
    const __m512 e0 = four_of(table, bits);
    const __m512 e1 = four_of(table + 16, _mm512_srli_epi32(bits, 4));
    const __m512 e2 = four_of(table + 32, _mm512_srli_epi32(bits, 8));
    const __m512 e3 = four_of(table + 48, _mm512_srli_epi32(bits, 12));
    s.even = _mm512_add_ps(s.even, _mm512_add_ps(_mm512_add_ps(e0, e1), _mm512_add_ps(e2, e3)));
    const __m512 o0 = four_of(table, _mm512_srli_epi32(bits, 16));
    const __m512 o1 = four_of(table + 16, _mm512_srli_epi32(bits, 20));
    const __m512 o2 = four_of(table + 32, _mm512_srli_epi32(bits, 24));
    const __m512 o3 = four_of(table + 48, _mm512_srli_epi32(bits, 28));
    s.odd = _mm512_add_ps(s.odd, _mm512_add_ps(_mm512_add_ps(o0, o1), _mm512_add_ps(o2, o3)));
    look_up_bits(s.rest, t + 1, at, bits);
  }
}

// Nine inputs, three digits of five bits in each half of the double word.
template <int T>
TERN_INLINE void look_up_digits(Sums<T>& s, const Tables* t, std::int64_t at, __m512i word) {
  if constexpr (T > 0) {
    const float* table = t->entries + at;
    const __m512 e0 = triple_of(table, word);
    const __m512 e1 = triple_of(table + 32, _mm512_srli_epi32(word, 5));
    const __m512 e2 = triple_of(table + 64, _mm512_srli_epi32(word, 10));
    s.even = _mm512_add_ps(s.even, _mm512_add_ps(_mm512_add_ps(e0, e1), e2));
    const __m512 o0 = triple_of(table, _mm512_srli_epi32(word, 16));
    const __m512 o1 = triple_of(table + 32, _mm512_srli_epi32(word, 21));
    const __m512 o2 = triple_of(table + 64, _mm512_srli_epi32(word, 26));
    s.odd = _mm512_add_ps(s.odd, _mm512_add_ps(_mm512_add_ps(o0, o1), o2));
    look_up_digits(s.rest, t + 1, at, word);
  }
}

// Input 63 of 64: +1 in the top bits of word 0, -1 in those of word 1.
template <int T>
TERN_INLINE void add_last(Sums<T>& s, const Tables* t, std::int64_t at, __m512i plus,
                          __m512i minus) {
  if constexpr (T > 0) {
    const __m512 x = _mm512_set1_ps(t->entries[at]);
    const __m512i even = _mm512_set1_epi32(0x8000);
    s.even = _mm512_mask_add_ps(s.even, _mm512_test_epi32_mask(plus, even), s.even, x);
    s.even = _mm512_mask_sub_ps(s.even, _mm512_test_epi32_mask(minus, even), s.even, x);
    s.odd = _mm512_mask_add_ps(s.odd, _mm512_movepi32_mask(plus), s.odd, x);
    s.odd = _mm512_mask_sub_ps(s.odd, _mm512_movepi32_mask(minus), s.odd, x);
    add_last(s.rest, t + 1, at, plus, minus);
  }
}

// Sixteen inputs of 32 rows. Codes 0..3 are -1, 0, +1, +2 without a plain sum of x to subtract: the
// weight 0 of a huge x must not cost digits.
template <PackedKind K, int T>
TERN_INLINE void add_word(Sums<T>& plus, Sums<T>& minus, const std::byte* w, const Tables* t,
                          std::int64_t at) {
  const __m512i first = _mm512_load_si512(w);
  if constexpr (K == PackedKind::kBinary) {
    look_up_bits(plus, t, at, first);
  } else {
    const __m512i second = _mm512_load_si512(w + 64);
    look_up_bits(plus, t, at, second);
    look_up_bits(plus, t, at, _mm512_and_si512(first, second));
    constexpr int kNor = 0x01;  // 1 where all operands are 0
    look_up_bits(minus, t, at, _mm512_ternarylogic_epi32(second, second, first, kNor));
  }
}

// total += scale * (plus - minus), or scale * (2 plus - sum) for binary weights.
template <PackedKind K, int T>
TERN_INLINE void finish(const Sums<T>& plus, const Sums<T>& minus, const Tables* t,
                        std::int64_t half, const std::byte* scales, float* total,
                        std::int64_t total_stride) {
  if constexpr (T > 0) {
    __m512 even = plus.even;
    __m512 odd = plus.odd;
    if constexpr (K == PackedKind::kBinary) {
      const __m512 sum = _mm512_set1_ps(t->sums[half] + t->sums[half + 1]);
      even = _mm512_sub_ps(_mm512_add_ps(even, even), sum);
      odd = _mm512_sub_ps(_mm512_add_ps(odd, odd), sum);
    } else {
      even = _mm512_sub_ps(even, minus.even);
      odd = _mm512_sub_ps(odd, minus.odd);
    }
    const auto* halfs = reinterpret_cast<const __m256i*>(scales);
    const __m512 d0 = _mm512_cvtph_ps(_mm256_load_si256(halfs));
    const __m512 d1 = _mm512_cvtph_ps(_mm256_load_si256(halfs + 1));
    _mm512_store_ps(total, _mm512_fmadd_ps(even, d0, _mm512_load_ps(total)));
    _mm512_store_ps(total + 16, _mm512_fmadd_ps(odd, d1, _mm512_load_ps(total + 16)));
    finish<K>(plus.rest, minus.rest, t + 1, half, scales, total + total_stride, total_stride);
  }
}

// One group of one row block for T tokens.
template <PackedKind K, int T>
void add_group(const PackedView& w, const std::byte* group, std::int64_t half, const Tables* t,
               float* total, std::int64_t total_stride) {
  const std::byte* codes = group + 64;
  Sums<T> plus;
  Sums<T> minus;
  clear(plus);
  clear(minus);
  for (std::int64_t h = half; h < half + w.group / 64; ++h) {
    if constexpr (K == PackedKind::kTernary) {
      const std::int64_t at = h * kTernaryFloats;
      for (int word = 0; word < 7; ++word) {
        look_up_digits(plus, t, at + word * 96, _mm512_load_si512(codes + word * 64));
      }
      add_last(plus, t, at + 21 * 32, _mm512_load_si512(codes), _mm512_load_si512(codes + 64));
      codes += 7 * 64;
    } else {
      constexpr std::int64_t kWordBytes = K == PackedKind::kBinary ? 64 : 128;
      for (int word = 0; word < 4; ++word, codes += kWordBytes) {
        add_word<K>(plus, minus, codes, t, h * kSubsetFloats + word * 64);
      }
    }
  }
  finish<K>(plus, minus, t, half, group, total, total_stride);
}

using GroupFn = void (*)(const PackedView&, const std::byte*, std::int64_t, const Tables*, float*,
                         std::int64_t);
template <PackedKind K>
constexpr GroupFn kGroupKernels[kTokens] = {add_group<K, 1>, add_group<K, 2>, add_group<K, 3>,
                                            add_group<K, 4>};

const GroupFn* group_kernels(PackedKind kind) {
  if (kind == PackedKind::kBinary) return kGroupKernels<PackedKind::kBinary>;
  if (kind == PackedKind::kTernary) return kGroupKernels<PackedKind::kTernary>;
  return kGroupKernels<PackedKind::kCodes>;
}

// Sums of even rows come first in `total`.
void store_block(const PackedMatmulArgs& args, std::int64_t row, std::int64_t block,
                 const float* total) {
  const std::int64_t n = block * kPackedBlockRows;
  const std::int64_t left = args.weights.rows - n;
  const std::int64_t count = left < kPackedBlockRows ? left : kPackedBlockRows;
  float* y = args.y + row * args.y_stride + n;
  for (std::int64_t r = 0; r < count; ++r) {
    const float v = total[r % 2 * 16 + r / 2];
    y[r] = args.residual == nullptr ? v : args.residual[row * args.residual_stride + n + r] + v;
  }
}

void multiply_tile(const PackedMatmulArgs& args, std::int64_t row, int count, std::int64_t begin,
                   std::int64_t end) {
  const PackedView& w = args.weights;
  auto& scratch = *reinterpret_cast<Scratch*>(args.scratch);
  const GroupFn kernel = group_kernels(w.kind)[count - 1];
  constexpr std::int64_t kTotalStride = kMaxBlocks * kPackedBlockRows;
  for (auto& token : scratch.totals) {
    for (auto& block : token) {
      for (float& total : block) total = 0.0f;
    }
  }
  const std::int64_t chunk_groups = kChunk / w.group;
  for (std::int64_t g = 0; g < w.groups; g += chunk_groups) {
    const std::int64_t groups = w.groups - g < chunk_groups ? w.groups - g : chunk_groups;
    for (int i = 0; i < count; ++i) {
      build_tables(args.x + (row + i) * args.x_stride + g * w.group, groups * w.group,
                   w.kind == PackedKind::kTernary, scratch.tables[i]);
    }
    for (std::int64_t b = begin; b < end; ++b) {
      const std::byte* group = w.data + b * w.row_block_bytes + g * w.group_bytes;
      for (std::int64_t i = 0; i < groups; ++i, group += w.group_bytes) {
        kernel(w, group, i * w.group / 64, scratch.tables, scratch.totals[0][b - begin],
               kTotalStride);
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    for (std::int64_t b = begin; b < end; ++b) {
      store_block(args, row + i, b, scratch.totals[i][b - begin]);
    }
  }
}

}  // namespace

void avx512_matmul_f32(const PackedMatmulArgs& args) {
  for (std::int64_t begin = args.block_begin; begin < args.block_end; begin += kMaxBlocks) {
    const std::int64_t end =
        begin + kMaxBlocks < args.block_end ? begin + kMaxBlocks : args.block_end;
    for (std::int64_t row = 0; row < args.rows; row += kTokens) {
      const std::int64_t left = args.rows - row;
      multiply_tile(args, row, left < kTokens ? static_cast<int>(left) : kTokens, begin, end);
    }
  }
}

}  // namespace tern::cpu
