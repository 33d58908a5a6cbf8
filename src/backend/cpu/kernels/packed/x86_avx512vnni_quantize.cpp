// Quantisation of activations and the word tables of the `lut512` variant, AVX-512 with BW and
// VNNI.
#include "backend/cpu/kernels/packed/x86.h"
#include "backend/cpu/kernels/packed/x86_avx512.h"

namespace tern::cpu {
namespace {

// T[i] = sum of q[b] over the bits b of i, for five inputs: at most 5 * 2047 either way.
__m512i subset_sums(const std::int16_t* q) {
  const __m512i t0 = _mm512_maskz_set1_epi16(0xaaaaaaaau, q[0]);
  const __m512i t1 = _mm512_maskz_set1_epi16(0xccccccccu, q[1]);
  const __m512i t2 = _mm512_maskz_set1_epi16(0xf0f0f0f0u, q[2]);
  const __m512i t3 = _mm512_maskz_set1_epi16(0xff00ff00u, q[3]);
  const __m512i t4 = _mm512_maskz_set1_epi16(0xffff0000u, q[4]);
  return _mm512_add_epi16(_mm512_add_epi16(_mm512_add_epi16(t0, t1), _mm512_add_epi16(t2, t3)), t4);
}

// The value in both halves of a double word, ready to be broadcast.
void store_pair(std::int16_t q, std::byte* out) { _mm_storeu_si32(out, _mm_set1_epi16(q)); }

// 64 inputs: per 16 of them tables for inputs 0-4, 5-9, 10-14, and input 15 as it is.
void store_subset_tables(const std::int16_t* q, std::byte* out) {
  for (int word = 0; word < 4; ++word, q += 16) {
    std::byte* table = out + word * 192;
    _mm512_store_si512(table, subset_sums(q));
    _mm512_store_si512(table + 64, subset_sums(q + 5));
    _mm512_store_si512(table + 128, subset_sums(q + 10));
    store_pair(q[15], out + 12 * 64 + 4 * word);
  }
}

// T[c0 + 3 c1 + 9 c2] = sum of (c - 1) q over three inputs, entries 27 to 31 are 0.
__m512i triple_sums(const std::int16_t* q) {
  alignas(64) static constexpr std::int16_t kDigits[3][32] = {
      {-1, 0, 1,  -1, 0, 1,  -1, 0, 1,  -1, 0, 1, -1, 0, 1, -1,
       0,  1, -1, 0,  1, -1, 0,  1, -1, 0,  1, 0, 0,  0, 0, 0},
      {-1, -1, -1, 0,  0,  0, 1, 1, 1, -1, -1, -1, 0, 0, 0, 1,
       1,  1,  -1, -1, -1, 0, 0, 0, 1, 1,  1,  0,  0, 0, 0, 0},
      {-1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0,
       0,  0,  1,  1,  1,  1,  1,  1,  1,  1, 1, 0, 0, 0, 0, 0}};
  const __m512i t0 = _mm512_mullo_epi16(_mm512_set1_epi16(q[0]), _mm512_load_si512(kDigits[0]));
  const __m512i t1 = _mm512_mullo_epi16(_mm512_set1_epi16(q[1]), _mm512_load_si512(kDigits[1]));
  const __m512i t2 = _mm512_mullo_epi16(_mm512_set1_epi16(q[2]), _mm512_load_si512(kDigits[2]));
  return _mm512_add_epi16(_mm512_add_epi16(t0, t1), t2);
}

// 64 inputs: 21 tables of three, and input 63 as it is.
void store_ternary_tables(const std::int16_t* q, std::byte* out) {
  for (int triple = 0; triple < 21; ++triple) {
    _mm512_store_si512(out + triple * 64, triple_sums(q + 3 * triple));
  }
  store_pair(q[63], out + 21 * 64);
}

}  // namespace

void avx512_quantize(const QuantizeArgs& args) {
  const RecordsView& records = args.records;
  for (std::int64_t row = args.row_begin; row < args.row_end; ++row) {
    std::byte* record = records.data + row * records.record_bytes;
    avx2_quantize_integers(args.x + row * args.x_stride, records, record);
    const auto* q = reinterpret_cast<const std::int16_t*>(record + records.q_offset);
    for (std::int64_t half = 0; half < records.inputs / 64; ++half, q += 64) {
      if (records.subset_table_offset >= 0) {
        store_subset_tables(q, record + records.subset_table_offset + half * (13 * 64));
      }
      if (records.ternary_table_offset >= 0) {
        store_ternary_tables(q, record + records.ternary_table_offset + half * (22 * 64));
      }
    }
  }
}

}  // namespace tern::cpu
