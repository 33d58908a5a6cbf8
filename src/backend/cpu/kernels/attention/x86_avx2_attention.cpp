// attention for AVX2: one split of 256 keys for up to 48 queries at a time, in the decode and in
// the prefill form alike, so that both give the same bits.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/attention/kernels.h"
#include "backend/cpu/kernels/attention/x86_avx2_tiles.h"
#include "backend/cpu/kernels/elementwise/x86_avx2_math.h"

namespace tern::cpu {
namespace {

constexpr int kRecordHead = 8;  // floats before o: maximum, sum, padding
const float kMinusInfinity = -__builtin_inff();

// Up to 48 queries that read the same key head of the same sequence.
struct Tile {
  int count;
  const float* q[kAttentionTileQueries];
  std::int64_t visible[kAttentionTileQueries];  // keys 0 .. visible - 1 of the sequence
  float* record[kAttentionTileQueries];         // where the split's result goes
  int keys[kAttentionTileQueries];              // visible keys inside of the split
};

// One key head's keys or values of one sequence.
struct Plane {
  const std::byte* base;
  std::uint64_t page_stride;
  std::uint64_t head_offset;  // of the key head inside of a page
  const std::uint32_t* pages;
  int width;
  bool is_f16;
};

Plane make_plane(const KvView& kv, const std::byte* base, KvDtype dtype, int kv_head,
                 const std::uint32_t* pages) {
  const bool is_f16 = dtype == KvDtype::kF16;
  const std::uint64_t head_bytes = static_cast<std::uint64_t>(kKvPagePositions) *
                                   static_cast<std::uint64_t>(kv.head_dim) * (is_f16 ? 2U : 4U);
  return {base,  kv.page_stride_bytes, static_cast<std::uint64_t>(kv_head) * head_bytes,
          pages, kv.head_dim,          is_f16};
}

const std::byte* page_of(const Plane& plane, std::int64_t page) {
  return plane.base + plane.pages[page] * plane.page_stride + plane.head_offset;
}

// The page's first `rows` rows as f32: in place, or converted into `buffer`, where rows up to the
// next multiple of 4 are zero. The following page is asked for meanwhile (`has_next`): pages lie
// anywhere, so the processor cannot guess it.
const float* page_rows(const Plane& plane, std::int64_t page, int rows, bool has_next,
                       float* buffer) {
  const std::byte* from = page_of(plane, page);
  const std::byte* next = has_next ? page_of(plane, page + 1) : from;
  const int count = rows * plane.width;
  if (!plane.is_f16) {
    if (has_next) {
      for (int i = 0; i < 4 * count; i += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(next + i), _MM_HINT_T0);
      }
    }
    return reinterpret_cast<const float*>(from);
  }
  const auto* halves = reinterpret_cast<const __m128i*>(from);
  for (int i = 0; i < count; i += 8) {
    if (i % 32 == 0) _mm_prefetch(reinterpret_cast<const char*>(next + 2 * i), _MM_HINT_T0);
    _mm256_storeu_ps(buffer + i, _mm256_cvtph_ps(_mm_loadu_si128(halves + i / 8)));
  }
  const int padded = (rows + 3) / 4 * 4 * plane.width;
  for (int i = count; i < padded; i += 8) _mm256_storeu_ps(buffer + i, _mm256_setzero_ps());
  return buffer;
}

int most_keys(const Tile& tile) {
  int most = 0;
  for (int i = 0; i < tile.count; ++i) most = tile.keys[i] > most ? tile.keys[i] : most;
  return most;
}

int minimum(int a, int b) { return a < b ? a : b; }
int maximum(int a, int b) { return a > b ? a : b; }

// Scores of one page, rows [32 * page, 32 * page + rows) of the split. Scores beyond a query's keys
// are made and not used.
void score_page(const Tile& tile, const float* k, int width, int first_key, int rows, float scale,
                float* scores) {
  const __m128 scales = _mm_set1_ps(scale);
  int i = 0;
  for (; i + 3 <= tile.count; i += 3) {
    const int keys = minimum(
        rows, maximum(tile.keys[i], maximum(tile.keys[i + 1], tile.keys[i + 2])) - first_key);
    float* s = scores + i * kAttentionSplit + first_key;
    for (int key = 0; key < keys; key += 4) {
      float* const rows_of_s[3] = {s + key, s + kAttentionSplit + key,
                                   s + 2 * kAttentionSplit + key};
      scores_3x4(tile.q + i, k + key * width, width, scales, rows_of_s);
    }
  }
  for (; i < tile.count; ++i) {
    const int keys = minimum(rows, tile.keys[i] - first_key);
    float* s = scores + i * kAttentionSplit + first_key;
    for (int key = 0; key < keys; key += 4) {
      scores_1x4(tile.q[i], k + key * width, width, scales, s + key);
    }
  }
}

// s becomes exp(s - maximum), zero beyond `keys` up to the next multiple of 8; the record gets
// maximum and sum.
void softmax_split(float* s, int keys, float* record) {
  const __m256 lowest = _mm256_set1_ps(kMinusInfinity);
  __m256 most = lowest;
  for (int i = 0; i < keys; i += 8) {
    const __m256 valid = _mm256_castsi256_ps(first_lanes(keys - i));
    const __m256 x = _mm256_blendv_ps(lowest, _mm256_loadu_ps(s + i), valid);
    most = _mm256_max_ps(x, most);  // a NaN leaves `most` as it is; the exponential shows it
  }
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  half = _mm_max_ss(half, _mm_movehdup_ps(half));
  const float largest = _mm_cvtss_f32(half);
  // -Inf - -Inf never happens: with nothing but -Inf every weight is e^(-Inf - 0) = 0.
  const __m256 shift = _mm256_set1_ps(largest == kMinusInfinity ? 0.0F : largest);
  __m256 sum = _mm256_setzero_ps();
  for (int i = 0; i < keys; i += 8) {
    const __m256 valid = _mm256_castsi256_ps(first_lanes(keys - i));
    const __m256 p =
        _mm256_and_ps(exp_nonpositive(_mm256_sub_ps(_mm256_loadu_ps(s + i), shift)), valid);
    _mm256_storeu_ps(s + i, p);
    sum = _mm256_add_ps(sum, p);
  }
  record[0] = largest;
  record[1] = sum_pairwise(sum);
}

// o += p v over one page of values.
void weigh_page(const Tile& tile, const float* v, int width, int first_key, int rows,
                const float* scores) {
  const int blocks = width / 32 * 32;
  int keys[kAttentionTileQueries];
  for (int i = 0; i < tile.count; ++i) {
    keys[i] = maximum(0, minimum(rows, tile.keys[i] - first_key));
  }
  for (int d = 0; d < blocks; d += 32) {
    int i = 0;
    for (; i + 3 <= tile.count; i += 3) {
      const float* s = scores + i * kAttentionSplit + first_key;
      const float* const p[3] = {s, s + kAttentionSplit, s + 2 * kAttentionSplit};
      float* const o[3] = {tile.record[i] + kRecordHead + d, tile.record[i + 1] + kRecordHead + d,
                           tile.record[i + 2] + kRecordHead + d};
      const int common = minimum(keys[i], minimum(keys[i + 1], keys[i + 2]));
      weigh_3x32(p, v + d, width, common, o);
      for (int j = 0; j < 3; ++j) {
        if (keys[i + j] > common) {
          weigh_1x32(p[j] + common, v + common * width + d, width, keys[i + j] - common, o[j]);
        }
      }
    }
    for (; i < tile.count; ++i) {
      weigh_1x32(scores + i * kAttentionSplit + first_key, v + d, width, keys[i],
                 tile.record[i] + kRecordHead + d);
    }
  }
  for (int d = blocks; d < width; d += 8) {
    for (int i = 0; i < tile.count; ++i) {
      weigh_1x8(scores + i * kAttentionSplit + first_key, v + d, width, keys[i],
                tile.record[i] + kRecordHead + d);
    }
  }
}

// The records of one split for all queries of the tile.
void attend_split(Tile& tile, const Plane& k, const Plane& v, std::int64_t split, float scale,
                  float* page, float* scores) {
  const std::int64_t first = split * kAttentionSplit;
  for (int i = 0; i < tile.count; ++i) {
    const std::int64_t keys = tile.visible[i] - first;
    tile.keys[i] = keys <= 0                 ? 0
                   : keys >= kAttentionSplit ? kAttentionSplit
                                             : static_cast<int>(keys);
  }
  const int most = most_keys(tile);
  const std::int64_t first_page = split * (kAttentionSplit / kKvPagePositions);
  for (int key = 0; key < most; key += kKvPagePositions) {
    const int rows = minimum(kKvPagePositions, most - key);
    const float* keys = page_rows(k, first_page + key / kKvPagePositions, rows,
                                  key + kKvPagePositions < most, page);
    score_page(tile, keys, k.width, key, rows, scale, scores);
  }
  for (int i = 0; i < tile.count; ++i) {
    softmax_split(scores + i * kAttentionSplit, tile.keys[i], tile.record[i]);
    float* o = tile.record[i] + kRecordHead;
    for (int d = 0; d < v.width; d += 8) _mm256_storeu_ps(o + d, _mm256_setzero_ps());
  }
  for (int key = 0; key < most; key += kKvPagePositions) {
    const int rows = minimum(kKvPagePositions, most - key);
    const float* values = page_rows(v, first_page + key / kKvPagePositions, rows,
                                    key + kKvPagePositions < most, page);
    weigh_page(tile, values, v.width, key, rows, scores);
  }
}

bool is_empty(const float* record) { return record[0] == kMinusInfinity && record[1] == 0; }

float exp_scalar(float x) { return _mm256_cvtss_f32(exp_nonpositive(_mm256_set1_ps(x))); }

// running = running joined with the next split's record.
void merge_record(float* running, const float* record, int width) {
  if (is_empty(record)) return;
  if (is_empty(running)) {
    running[0] = record[0];
    running[1] = record[1];
    for (int d = 0; d < width; d += 8) {
      _mm256_storeu_ps(running + kRecordHead + d, _mm256_loadu_ps(record + kRecordHead + d));
    }
    return;
  }
  const float largest = running[0] > record[0] ? running[0] : record[0];
  const float old_share = exp_scalar(running[0] - largest);
  const float new_share = exp_scalar(record[0] - largest);
  running[0] = largest;
  running[1] = running[1] * old_share + record[1] * new_share;
  const __m256 old_shares = _mm256_set1_ps(old_share);
  const __m256 new_shares = _mm256_set1_ps(new_share);
  for (int d = 0; d < width; d += 8) {
    const __m256 added = _mm256_mul_ps(_mm256_loadu_ps(record + kRecordHead + d), new_shares);
    float* o = running + kRecordHead + d;
    _mm256_storeu_ps(o, _mm256_fmadd_ps(_mm256_loadu_ps(o), old_shares, added));
  }
}

void clear_record(float* record) {
  record[0] = kMinusInfinity;
  record[1] = 0;
}

void finish(const float* running, int width, float* out) {
  const bool nothing = running[1] == 0;
  const __m256 sum = _mm256_set1_ps(running[1]);
  for (int d = 0; d < width; d += 8) {
    const __m256 o = _mm256_loadu_ps(running + kRecordHead + d);
    _mm256_storeu_ps(out + d, nothing ? _mm256_setzero_ps() : _mm256_div_ps(o, sum));
  }
}

// Query number `index` of rows [row_begin, ...) for one key head: row by row, then the heads of the
// group.
struct QueryPlace {
  int row;
  int head;
};
QueryPlace place(int row_begin, int group, int kv_head, int index) {
  return {row_begin + index / group, kv_head * group + index % group};
}

// Queries [first, first + count).
void fill_tile(const AttentionArgs& args, int row_begin, int kv_head, int first, int count,
               Tile& tile) {
  const int group = args.heads / args.kv.kv_heads;
  tile.count = count;
  for (int i = 0; i < count; ++i) {
    const QueryPlace at = place(row_begin, group, kv_head, first + i);
    tile.q[i] =
        args.q + at.row * args.q_row_stride + static_cast<std::int64_t>(at.head) * args.kv.head_dim;
    tile.visible[i] = args.positions[at.row] < 0 ? 0 : std::int64_t{args.positions[at.row]} + 1;
  }
}

}  // namespace

void attention_split_avx2(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                          int split, int splits, float* partials, std::byte* scratch) {
  const int width = args.kv.head_dim;
  const int group = args.heads / args.kv.kv_heads;
  const AttentionScratch parts = attention_scratch(width);
  auto* floats = reinterpret_cast<float*>(scratch);
  const Plane k =
      make_plane(args.kv, args.kv.k_base, args.kv.dtype_k, kv_head, args.pages[row_begin]);
  const Plane v =
      make_plane(args.kv, args.kv.v_base, args.kv.dtype_v, kv_head, args.pages[row_begin]);
  const int queries = (row_end - row_begin) * group;
  for (int first = 0; first < queries; first += kAttentionTileQueries) {
    Tile tile;
    fill_tile(args, row_begin, kv_head, first, minimum(kAttentionTileQueries, queries - first),
              tile);
    for (int i = 0; i < tile.count; ++i) {
      const QueryPlace at = place(0, group, kv_head, first + i);
      const std::int64_t record = (std::int64_t{at.row} * args.heads + at.head) * splits + split;
      tile.record[i] = partials + record * (width + kRecordHead);
    }
    attend_split(tile, k, v, split, args.scale, floats + parts.page, floats + parts.scores);
  }
}

void attention_merge_avx2(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                          int splits, const float* partials) {
  const int width = args.kv.head_dim;
  const int group = args.heads / args.kv.kv_heads;
  alignas(32) float running[kAttentionMaxHeadDim + kRecordHead];
  for (int index = 0; index < (row_end - row_begin) * group; ++index) {
    const QueryPlace at = place(0, group, kv_head, index);
    const float* records =
        partials + (std::int64_t{at.row} * args.heads + at.head) * splits * (width + kRecordHead);
    clear_record(running);
    for (int split = 0; split < splits; ++split) {
      merge_record(running, records + std::int64_t{split} * (width + kRecordHead), width);
    }
    float* out = args.out + (row_begin + at.row) * args.out_row_stride +
                 static_cast<std::int64_t>(at.head) * width;
    finish(running, width, out);
  }
}

void attention_prefill_avx2(const AttentionArgs& args, int row_begin, int row_end, int kv_head,
                            std::byte* scratch) {
  if (row_begin >= row_end) return;
  const int width = args.kv.head_dim;
  const int group = args.heads / args.kv.kv_heads;
  const AttentionScratch parts = attention_scratch(width);
  auto* floats = reinterpret_cast<float*>(scratch);
  const Plane k =
      make_plane(args.kv, args.kv.k_base, args.kv.dtype_k, kv_head, args.pages[row_begin]);
  const Plane v =
      make_plane(args.kv, args.kv.v_base, args.kv.dtype_v, kv_head, args.pages[row_begin]);
  const int queries = (row_end - row_begin) * group;
  for (int first = 0; first < queries; first += kAttentionTileQueries) {
    Tile tile;
    fill_tile(args, row_begin, kv_head, first, minimum(kAttentionTileQueries, queries - first),
              tile);
    std::int64_t most = 0;
    for (int i = 0; i < tile.count; ++i) {
      tile.record[i] = floats + parts.split + i * (width + kRecordHead);
      clear_record(floats + parts.running + i * (width + kRecordHead));
      most = tile.visible[i] > most ? tile.visible[i] : most;
    }
    for (std::int64_t split = 0; split * kAttentionSplit < most; ++split) {
      attend_split(tile, k, v, split, args.scale, floats + parts.page, floats + parts.scores);
      for (int i = 0; i < tile.count; ++i) {
        merge_record(floats + parts.running + i * (width + kRecordHead), tile.record[i], width);
      }
    }
    for (int i = 0; i < tile.count; ++i) {
      const QueryPlace at = place(row_begin, group, kv_head, first + i);
      finish(floats + parts.running + i * (width + kRecordHead), width,
             args.out + at.row * args.out_row_stride + static_cast<std::int64_t>(at.head) * width);
    }
  }
}

}  // namespace tern::cpu
