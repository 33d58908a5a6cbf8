// Quantisation of activations and the byte tables of the `lut` variant, AVX2.
#include <immintrin.h>

#include "backend/cpu/kernels/packed/x86.h"

namespace tern::cpu {
namespace {

constexpr std::int64_t kGroup = 128;           // inputs per scale
constexpr std::int32_t kInfBits = 0x7f800000;  // bits of |x| from here on are Inf or NaN

std::int32_t max_lane(__m256i v) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return _mm_cvtsi128_si32(m);
}

std::int32_t sum_lanes(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

// Bits of the largest |x|: as integers they order like the floats, and NaN and Inf come out on top.
std::int32_t max_abs_bits(const float* x, std::int64_t count) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i m0 = _mm256_setzero_si256();
  __m256i m1 = m0;
  for (std::int64_t k = 0; k < count; k += 16) {
    const __m256i v0 = _mm256_castps_si256(_mm256_loadu_ps(x + k));
    const __m256i v1 = _mm256_castps_si256(_mm256_loadu_ps(x + k + 8));
    m0 = _mm256_max_epi32(m0, _mm256_and_si256(v0, magnitude));
    m1 = _mm256_max_epi32(m1, _mm256_and_si256(v1, magnitude));
  }
  return max_lane(_mm256_max_epi32(m0, m1));
}

__m256i round_8(const float* x, __m256 r) {
  const __m256i limit = _mm256_set1_epi32(2047);
  const __m256i low = _mm256_set1_epi32(-2047);
  const __m256i q = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), r));
  return _mm256_max_epi32(_mm256_min_epi32(q, limit), low);
}

// 64 inputs: q and its sum.
std::int32_t round_64(const float* x, float r, std::int16_t* q) {
  const __m256 factor = _mm256_set1_ps(r);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sum = _mm256_setzero_si256();
  for (int k = 0; k < 64; k += 16) {
    __m256i v = _mm256_packs_epi32(round_8(x + k, factor), round_8(x + k + 8, factor));
    v = _mm256_permute4x64_epi64(v, 0xd8);
    _mm256_store_si256(reinterpret_cast<__m256i*>(q + k), v);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(v, ones));
  }
  return sum_lanes(sum);
}

void clear_64(std::int16_t* q) {
  for (int k = 0; k < 64; k += 16) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(q + k), _mm256_setzero_si256());
  }
}

// T[i] = 8192 + sum of q[b] over the bits b of i; 4 * 2047 + 8192 has 14 bits.
__m256i subset_sums(const std::int16_t* q) {
  const __m256i bit0 = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  const __m256i bit1 = _mm256_set1_epi64x(static_cast<long long>(0xffffffff00000000ull));
  const __m256i bit2 = _mm256_set_epi64x(-1, 0, -1, 0);
  const __m256i bit3 = _mm256_set_epi64x(-1, -1, 0, 0);
  const __m256i t01 = _mm256_add_epi16(_mm256_and_si256(bit0, _mm256_set1_epi16(q[0])),
                                       _mm256_and_si256(bit1, _mm256_set1_epi16(q[1])));
  const __m256i t23 = _mm256_add_epi16(_mm256_and_si256(bit2, _mm256_set1_epi16(q[2])),
                                       _mm256_and_si256(bit3, _mm256_set1_epi16(q[3])));
  return _mm256_add_epi16(_mm256_add_epi16(t01, t23), _mm256_set1_epi16(8192));
}

// Eight inputs: for each four the bits 0-4, 5-9 and 10-13 of T, 16 bytes each.
void store_tables(const std::int16_t* q, std::byte* out) {
  const __m256i five = _mm256_set1_epi16(31);
  const __m256i t0 = subset_sums(q);
  const __m256i t1 = subset_sums(q + 4);
  const __m256i lm0 = _mm256_packus_epi16(_mm256_and_si256(t0, five),
                                          _mm256_and_si256(_mm256_srli_epi16(t0, 5), five));
  const __m256i lm1 = _mm256_packus_epi16(_mm256_and_si256(t1, five),
                                          _mm256_and_si256(_mm256_srli_epi16(t1, 5), five));
  __m256i h = _mm256_packus_epi16(_mm256_srli_epi16(t0, 10), _mm256_srli_epi16(t1, 10));
  h = _mm256_permute4x64_epi64(h, 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute4x64_epi64(lm0, 0xd8));
  _mm_store_si128(reinterpret_cast<__m128i*>(out + 32), _mm256_castsi256_si128(h));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 48), _mm256_permute4x64_epi64(lm1, 0xd8));
  _mm_store_si128(reinterpret_cast<__m128i*>(out + 80), _mm256_extracti128_si256(h, 1));
}

}  // namespace

void avx2_quantize_integers(const float* x, const RecordsView& records, std::byte* record) {
  auto* q = reinterpret_cast<std::int16_t*>(record + records.q_offset);
  auto* a = reinterpret_cast<float*>(record + records.scales_offset);
  auto* sums = reinterpret_cast<std::int32_t*>(record + records.sums_offset);
  for (std::int64_t k = 0; k < records.inputs; k += kGroup, q += kGroup, ++a, sums += 2) {
    const std::int64_t count = records.inputs - k < kGroup ? records.inputs - k : kGroup;
    const std::int32_t bits = max_abs_bits(x + k, count);
    const float amax = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(bits)));
    sums[0] = 0;
    sums[1] = 0;
    if (bits >= kInfBits || amax < 0x1p-100f) {
      *a = bits >= kInfBits ? __builtin_nanf("") : 0.0f;
      clear_64(q);
      clear_64(q + 64);
      continue;
    }
    *a = amax / 2047.0f;
    const float r = 2047.0f / amax;
    sums[0] = round_64(x + k, r, q);
    if (count == kGroup) {
      sums[1] = round_64(x + k + 64, r, q + 64);
    } else {
      clear_64(q + 64);
    }
  }
}

void avx2_quantize(const QuantizeArgs& args) {
  const RecordsView& records = args.records;
  for (std::int64_t row = args.row_begin; row < args.row_end; ++row) {
    std::byte* record = records.data + row * records.record_bytes;
    avx2_quantize_integers(args.x + row * args.x_stride, records, record);
    if (records.subset_table_offset < 0) continue;
    const auto* q = reinterpret_cast<const std::int16_t*>(record + records.q_offset);
    std::byte* table = record + records.subset_table_offset;
    for (std::int64_t k = 0; k < records.inputs; k += 8, table += 96) store_tables(q + k, table);
  }
}

}  // namespace tern::cpu
