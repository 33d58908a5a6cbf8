// gemm_epilogue: D = activation(source + beta C + bias) in f32, rounded once to D's type.
#include "backend/metal/kernels/element.h"

TERN_EXPORT_LAYOUT(gemm_epilogue, TernEpilogueParams, TERN_EPILOGUE_LAYOUT)

namespace tern {

// 1 - erf(z) for z >= 0. Metal has no erf. Up to 1.75 the series of erf whose terms are all
// positive, beyond that the continued fraction, which converges to f32 in 32 steps there.
inline float erfc_positive(float z) {
  const float square = z * z;
  float result = 0.0F;
  if (z < 1.75F) {
    float term = z;
    float sum = z;
    for (tern_u32 n = 1U; n < 32U; ++n) {
      term = term * 2.0F * square / static_cast<float>(2U * n + 1U);
      sum = sum + term;
    }
    result = 1.0F - 1.12837916709551257F * exp(-square) * sum;
  } else {
    float fraction = z;
    for (tern_u32 n = 32U; n > 0U; --n) fraction = z + 0.5F * static_cast<float>(n) / fraction;
    result = exp(-square) * 0.56418958354775629F / fraction;
  }
  return result;
}

// x * Phi(x).
inline float gelu_erf(float x) {
  const float tail = erfc_positive(fabs(x) * 0.70710678118654752F);
  return 0.5F * x * (x < 0.0F ? tail : 2.0F - tail);
}

inline float gelu_tanh(float x) {
  // tanh of more than 10 is 1 in f32; a fast tanh may overflow inside.
  const float inner = 0.79788456080286536F * (x + 0.044715F * x * x * x);
  return 0.5F * x * (1.0F + tanh(clamp(inner, -10.0F, 10.0F)));
}

inline float activate(float x, tern_u32 activation) {
  float y = x;
  if (magnitude(x) > 0x7F800000U) return x;  // NaN stays NaN
  if (activation == kTernRelu) y = x < 0.0F ? 0.0F : x;
  if (activation == kTernSilu) y = x / (1.0F + exp(-x));
  if (activation == kTernGeluErf) y = gelu_erf(x);
  if (activation == kTernGeluTanh) y = gelu_tanh(x);
  return y;
}

}  // namespace tern

// Threadgroups (any number, 1) of 256 threads share the rows of the whole batch. source, d, c and
// bias are bytes from the starts of buffers 0, 1, 2 and 4; which of them are there: the bits above
// the activation (kernels.h, kHasSource ...). D may be the source or C, element by element.
kernel void gemm_epilogue(device const uchar* source [[buffer(0)]],
                          device uchar* d [[buffer(1)]],
                          device const uchar* c [[buffer(2)]],
                          constant TernEpilogueParams& p [[buffer(3)]],
                          device const uchar* bias [[buffer(4)]],
                          uint2 place [[threadgroup_position_in_grid]],
                          uint2 count [[threadgroups_per_grid]],
                          uint2 thread_place [[thread_position_in_threadgroup]]) {
  using namespace tern;
  const bool has_source = (p.activation & 0x100U) != 0U;
  const bool has_c = (p.activation & 0x200U) != 0U;
  const bool has_bias = (p.activation & 0x400U) != 0U;
  for (tern_u64 row = place.x; row < p.rows * p.batch; row += count.x) {
    const tern_u64 matrix = row / p.rows;
    const tern_u64 in_matrix = row % p.rows;
    const tern_u64 source_at = matrix * p.source_batch_stride + in_matrix * p.source_row_stride;
    const tern_u64 c_at = matrix * p.c_batch_stride + in_matrix * p.c_row_stride;
    const tern_u64 d_at = matrix * p.d_batch_stride + in_matrix * p.d_row_stride;
    for (tern_u64 k = thread_place.x; k < p.cols; k += 256U) {
      float x = 0.0F;
      if (has_source) x = load_element(source, p.source, source_at + k, kTernF32);
      if (has_c) x = fma(p.beta, load_element(c, p.c, c_at + k, p.c_type), x);
      if (has_bias) x = x + load_element(bias, p.bias, k, p.bias_type);
      store_element(d, p.d, d_at + k, p.d_type, activate(x, p.activation & 0xFFU));
    }
  }
}
