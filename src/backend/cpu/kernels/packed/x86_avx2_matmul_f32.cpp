// Float activations with packed weights, AVX2: a float permute answers for eight rows what three
// activations sum to under a pattern of three bits. Class F; the reference path of the CPU
// (`--activations f32`).
#include <immintrin.h>

#include "backend/cpu/kernels/packed/x86.h"

namespace tern::cpu {
namespace {

#define TERN_INLINE [[gnu::always_inline]] inline

constexpr std::int64_t kChunk = 512;  // inputs whose tables are built at a time
constexpr std::int64_t kStepFloats =
    24;  // of tables for the eight inputs of a step: 3 + 3 + 2 inputs
constexpr std::int64_t kMaxBlocks = 32;  // row blocks that share the tables
constexpr int kTokens = 4;               // that share the extraction of the indices

// The tables of one token and chunk, and its plain sums.
struct Tables {
  alignas(32) float subsets[kChunk / 8 * kStepFloats];
  float sums[kChunk / 64];
};

// How the scratch is used.
struct Scratch {
  Tables tables[kTokens];
  alignas(32) float totals[kTokens][kMaxBlocks][kPackedBlockRows];
};
static_assert(sizeof(Scratch) <= kPackedScratchBytes);

// out[i] = sum of x[b] over the bits b of i.
TERN_INLINE void subset_sums(float x0, float x1, float x2, float* out) {
  const __m256 bit0 = _mm256_castsi256_ps(_mm256_set_epi32(-1, 0, -1, 0, -1, 0, -1, 0));
  const __m256 bit1 = _mm256_castsi256_ps(_mm256_set_epi32(-1, -1, 0, 0, -1, -1, 0, 0));
  const __m256 bit2 = _mm256_castsi256_ps(_mm256_set_epi32(-1, -1, -1, -1, 0, 0, 0, 0));
  const __m256 t01 = _mm256_add_ps(_mm256_and_ps(bit0, _mm256_set1_ps(x0)),
                                   _mm256_and_ps(bit1, _mm256_set1_ps(x1)));
  _mm256_store_ps(out, _mm256_add_ps(t01, _mm256_and_ps(bit2, _mm256_set1_ps(x2))));
}

void build_tables(const float* x, std::int64_t inputs, Tables& tables) {
  for (std::int64_t k = 0; k < inputs; k += 8) {
    float* out = tables.subsets + k / 8 * kStepFloats;
    subset_sums(x[k], x[k + 1], x[k + 2], out);
    subset_sums(x[k + 3], x[k + 4], x[k + 5], out + 8);
    subset_sums(x[k + 6], x[k + 7], 0.0f, out + 16);
  }
  for (std::int64_t half = 0; half < inputs / 64; ++half) {
    float sum = 0.0f;
    for (std::int64_t k = half * 64; k < half * 64 + 64; ++k) sum += x[k];
    tables.sums[half] = sum;
  }
}

// Sums of T tokens for eight rows.
template <int T>
struct Sums {
  __m256 v;
  Sums<T - 1> rest;
};
template <>
struct Sums<0> {};

template <int T>
TERN_INLINE void clear(Sums<T>& s) {
  if constexpr (T > 0) {
    s.v = _mm256_setzero_ps();
    clear(s.rest);
  }
}

template <int T>
TERN_INLINE void look_up(Sums<T>& s, const Tables* t, std::int64_t at, __m256i i0, __m256i i1,
                         __m256i i2) {
  if constexpr (T > 0) {
    const float* table = t->subsets + at;
    const __m256 v0 = _mm256_permutevar8x32_ps(_mm256_load_ps(table), i0);
    const __m256 v1 = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), i1);
    const __m256 v2 = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 16), i2);
    s.v = _mm256_add_ps(s.v, _mm256_add_ps(_mm256_add_ps(v0, v1), v2));
    look_up(s.rest, t + 1, at, i0, i1, i2);
  }
}

TERN_INLINE __m256i eight_bytes(const std::byte* w) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(w)));
}

template <int T>
TERN_INLINE void look_up(Sums<T>& s, const Tables* t, std::int64_t at, __m256i bits) {
  look_up(s, t, at, bits, _mm256_srli_epi32(bits, 3), _mm256_srli_epi32(bits, 6));
}

// Eight inputs of eight rows: `plus` and `minus` gather what is added and subtracted. Codes 0..3
// are -1, 0, +1, +2 without a plain sum of x to subtract: the weight 0 of a huge x must not cost
// digits.
template <PackedKind K, int T>
TERN_INLINE void add_step(Sums<T>& plus, Sums<T>& minus, const std::byte* w, const Tables* t,
                          std::int64_t at) {
  const __m256i first = eight_bytes(w);
  if constexpr (K == PackedKind::kBinary) {
    look_up(plus, t, at, first);
  } else {
    const __m256i second = eight_bytes(w + 32);
    if constexpr (K == PackedKind::kTernary) {
      look_up(plus, t, at, first);
      look_up(minus, t, at, second);
    } else {
      look_up(plus, t, at, second);
      look_up(plus, t, at, _mm256_and_si256(first, second));
      look_up(minus, t, at,
              _mm256_andnot_si256(_mm256_or_si256(first, second), _mm256_set1_epi32(255)));
    }
  }
}

// total += scale * (plus - minus), or scale * (2 plus - sum) for binary weights; eight rows.
template <PackedKind K, int T>
TERN_INLINE void finish(const Sums<T>& plus, const Sums<T>& minus, const Tables* t,
                        std::int64_t half, __m256 scale, float* total, std::int64_t total_stride) {
  if constexpr (T > 0) {
    __m256 v;
    if constexpr (K == PackedKind::kBinary) {
      const __m256 sum = _mm256_set1_ps(t->sums[half] + t->sums[half + 1]);
      v = _mm256_sub_ps(_mm256_add_ps(plus.v, plus.v), sum);
    } else {
      v = _mm256_sub_ps(plus.v, minus.v);
    }
    _mm256_store_ps(total, _mm256_fmadd_ps(v, scale, _mm256_load_ps(total)));
    finish<K>(plus.rest, minus.rest, t + 1, half, scale, total + total_stride, total_stride);
  }
}

// One group of one row block for T tokens.
template <PackedKind K, int T>
void add_group(const PackedView& w, const std::byte* group, std::int64_t half, const Tables* t,
               float* total, std::int64_t total_stride) {
  constexpr std::int64_t kPlanes = K == PackedKind::kBinary ? 1 : 2;
  const int steps = w.group / 8;
  const std::byte* codes = group + 2 * kPackedBlockRows;
  for (int part = 0; part < 4; ++part) {  // rows 8 part .. 8 part + 7
    Sums<T> plus;
    Sums<T> minus;
    clear(plus);
    clear(minus);
    const std::byte* w_step = codes + 8 * part;
    std::int64_t at = half * 8 * kStepFloats;
    for (int step = 0; step < steps; ++step, w_step += kPlanes * 32, at += kStepFloats) {
      add_step<K>(plus, minus, w_step, t, at);
    }
    // Scales of rows 8p..8p+3 and 8p+4..8p+7: halves of two vectors of the exact kernel's order.
    const std::byte* scales = group + part % 2 * 32 + part / 2 * 8;
    const __m128i d =
        _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales)),
                           _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales + 16)));
    finish<K>(plus, minus, t, half, _mm256_cvtph_ps(d), total + 8 * part, total_stride);
  }
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

void store_block(const PackedMatmulArgs& args, std::int64_t row, std::int64_t block,
                 const float* total) {
  const std::int64_t n = block * kPackedBlockRows;
  const std::int64_t left = args.weights.rows - n;
  const std::int64_t count = left < kPackedBlockRows ? left : kPackedBlockRows;
  float* y = args.y + row * args.y_stride + n;
  for (std::int64_t r = 0; r < count; ++r) {
    y[r] = args.residual == nullptr ? total[r]
                                    : args.residual[row * args.residual_stride + n + r] + total[r];
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
                   scratch.tables[i]);
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

void avx2_matmul_f32(const PackedMatmulArgs& args) {
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
