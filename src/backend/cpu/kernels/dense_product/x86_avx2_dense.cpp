// dense_product for AVX2: register tiles of up to 3 rows x 4 outputs, eight lanes over the inputs.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/dense_product/kernels.h"
#include "backend/cpu/kernels/elementwise/x86_avx2_math.h"

namespace tern::cpu {
namespace {

// How eight weights become f32. `tail` reads only the first n < 8, the others are 0.
struct F32 {
  using Element = float;
  static __m256 load(const Element* w) { return _mm256_loadu_ps(w); }
  static __m256 tail(const Element* w, std::int64_t n) {
    return _mm256_maskload_ps(w, first_lanes(n));
  }
};

inline __m128i load_halves_tail(const std::uint16_t* w, std::int64_t n) {
  alignas(16) std::uint16_t padded[8] = {};
  for (std::int64_t i = 0; i < n; ++i) padded[i] = w[i];
  return _mm_load_si128(reinterpret_cast<const __m128i*>(padded));
}

struct F16 {
  using Element = std::uint16_t;
  static __m256 widen(__m128i halves) { return _mm256_cvtph_ps(halves); }
  static __m256 load(const Element* w) {
    return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  }
  static __m256 tail(const Element* w, std::int64_t n) { return widen(load_halves_tail(w, n)); }
};

struct Bf16 {
  using Element = std::uint16_t;
  static __m256 widen(__m128i upper) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(upper), 16));
  }
  static __m256 load(const Element* w) {
    return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  }
  static __m256 tail(const Element* w, std::int64_t n) { return widen(load_halves_tail(w, n)); }
};

// sums[r] = the dot products of row r with four outputs.
template <class W>
void tile_3x4(const float* const* x, const typename W::Element* const* w, std::int64_t inputs,
              __m128* sums) {
  __m256 a0 = _mm256_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
  __m256 b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  __m256 c0 = a0, c1 = a0, c2 = a0, c3 = a0;
  const float* x0 = x[0];
  const float* x1 = x[1];
  const float* x2 = x[2];
  const auto step = [&](__m256 p, __m256 q, __m256 r, auto weight) {
    __m256 v = weight(w[0]);
    a0 = _mm256_fmadd_ps(p, v, a0);
    b0 = _mm256_fmadd_ps(q, v, b0);
    c0 = _mm256_fmadd_ps(r, v, c0);
    v = weight(w[1]);
    a1 = _mm256_fmadd_ps(p, v, a1);
    b1 = _mm256_fmadd_ps(q, v, b1);
    c1 = _mm256_fmadd_ps(r, v, c1);
    v = weight(w[2]);
    a2 = _mm256_fmadd_ps(p, v, a2);
    b2 = _mm256_fmadd_ps(q, v, b2);
    c2 = _mm256_fmadd_ps(r, v, c2);
    v = weight(w[3]);
    a3 = _mm256_fmadd_ps(p, v, a3);
    b3 = _mm256_fmadd_ps(q, v, b3);
    c3 = _mm256_fmadd_ps(r, v, c3);
  };
  std::int64_t k = 0;
  for (; k + 8 <= inputs; k += 8) {
    step(_mm256_loadu_ps(x0 + k), _mm256_loadu_ps(x1 + k), _mm256_loadu_ps(x2 + k),
         [k](const typename W::Element* from) { return W::load(from + k); });
  }
  if (k < inputs) {
    const std::int64_t n = inputs - k;
    const __m256i mask = first_lanes(n);
    step(_mm256_maskload_ps(x0 + k, mask), _mm256_maskload_ps(x1 + k, mask),
         _mm256_maskload_ps(x2 + k, mask),
         [k, n](const typename W::Element* from) { return W::tail(from + k, n); });
  }
  sums[0] = sum4_pairwise(a0, a1, a2, a3);
  sums[1] = sum4_pairwise(b0, b1, b2, b3);
  sums[2] = sum4_pairwise(c0, c1, c2, c3);
}

template <class W>
__m128 tile_1x4(const float* x, const typename W::Element* const* w, std::int64_t inputs) {
  __m256 a0 = _mm256_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
  const typename W::Element* w0 = w[0];
  const typename W::Element* w1 = w[1];
  const typename W::Element* w2 = w[2];
  const typename W::Element* w3 = w[3];
  std::int64_t k = 0;
  for (; k + 8 <= inputs; k += 8) {
    const __m256 p = _mm256_loadu_ps(x + k);
    a0 = _mm256_fmadd_ps(p, W::load(w0 + k), a0);
    a1 = _mm256_fmadd_ps(p, W::load(w1 + k), a1);
    a2 = _mm256_fmadd_ps(p, W::load(w2 + k), a2);
    a3 = _mm256_fmadd_ps(p, W::load(w3 + k), a3);
  }
  if (k < inputs) {
    const std::int64_t n = inputs - k;
    const __m256 p = _mm256_maskload_ps(x + k, first_lanes(n));
    a0 = _mm256_fmadd_ps(p, W::tail(w0 + k, n), a0);
    a1 = _mm256_fmadd_ps(p, W::tail(w1 + k, n), a1);
    a2 = _mm256_fmadd_ps(p, W::tail(w2 + k, n), a2);
    a3 = _mm256_fmadd_ps(p, W::tail(w3 + k, n), a3);
  }
  return sum4_pairwise(a0, a1, a2, a3);
}

// y = residual + (sum + bias) for `count` (1 to 4) outputs.
void store_outputs(const DenseProductArgs& args, int row, std::int64_t n, int count, __m128 sum) {
  const __m128i mask = _mm_cmpgt_epi32(_mm_set1_epi32(count), _mm_setr_epi32(0, 1, 2, 3));
  if (args.bias != nullptr) sum = _mm_add_ps(sum, _mm_maskload_ps(args.bias + n, mask));
  if (args.residual != nullptr) {
    const float* residual = args.residual + row * args.residual_row_stride + n;
    sum = _mm_add_ps(_mm_maskload_ps(residual, mask), sum);
  }
  _mm_maskstore_ps(args.y + row * args.y_row_stride + n, mask, sum);
}

// Rows that are worked on while they fit the second cache (256 KiB of x), a multiple of 3.
int rows_per_chunk(std::int64_t inputs) {
  const std::int64_t rows = 65536 / (inputs + 1) / 3 * 3;
  return rows < 3 ? 3 : rows > 96 ? 96 : static_cast<int>(rows);
}

template <class W>
void product(const DenseProductArgs& args, int row_begin, int row_end, std::int64_t out_begin,
             std::int64_t out_end) {
  const auto* weights = reinterpret_cast<const typename W::Element*>(args.w);
  const int chunk = rows_per_chunk(args.inputs);
  for (int first = row_begin; first < row_end; first += chunk) {
    const int last = row_end - first < chunk ? row_end : first + chunk;
    for (std::int64_t n = out_begin; n < out_end; n += 4) {
      const int count = out_end - n < 4 ? static_cast<int>(out_end - n) : 4;
      const typename W::Element* w[4];
      for (int i = 0; i < 4; ++i) {  // a missing output repeats the last one and is not stored
        w[i] = weights + (n + (i < count ? i : count - 1)) * args.w_row_stride;
      }
      int r = first;
      for (; r + 3 <= last; r += 3) {
        const float* x = args.x + r * args.x_row_stride;
        const float* const rows[3] = {x, x + args.x_row_stride, x + 2 * args.x_row_stride};
        __m128 sums[3];
        tile_3x4<W>(rows, w, args.inputs, sums);
        for (int i = 0; i < 3; ++i) store_outputs(args, r + i, n, count, sums[i]);
      }
      for (; r < last; ++r) {
        store_outputs(args, r, n, count,
                      tile_1x4<W>(args.x + r * args.x_row_stride, w, args.inputs));
      }
    }
  }
}

}  // namespace

void dense_product_avx2(const DenseProductArgs& args, int row_begin, int row_end,
                        std::int64_t out_begin, std::int64_t out_end) {
  switch (args.format) {
    case quant::Format::kF16:
      return product<F16>(args, row_begin, row_end, out_begin, out_end);
    case quant::Format::kBf16:
      return product<Bf16>(args, row_begin, row_end, out_begin, out_end);
    default:
      return product<F32>(args, row_begin, row_end, out_begin, out_end);
  }
}

}  // namespace tern::cpu
