// quantize: 12-bit integers and one scale per 128 inputs, with the sum of each group's integers.
#include "backend/gpu/math/quantize.h"
#include "backend/gpu/params/rowwise.h"
#include "backend/metal/kernels/device.h"

TERN_EXPORT_LAYOUT(quantize_i12, TernQuantizeParams, TERN_QUANTIZE_LAYOUT)

// Threadgroups (ceil(groups / 8), rows) of 256 threads: one SIMD group per group of 128 inputs.
// Inputs beyond the row are zeros, up to the end of its last group.
kernel void quantize_i12(device uchar* arena [[buffer(1)]],
                         device const uchar* block [[buffer(2)]],
                         constant TernQuantizeParams& p [[buffer(3)]],
                         uint2 place [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint simd [[simdgroup_index_in_threadgroup]]) {
  using namespace tern;
  const tern_u32 group = place.x * 8U + simd;
  const tern_u32 groups = (p.width + 127U) / 128U;
  // The same for all lanes of a SIMD group.
  const bool has_work = group < groups && has_row(block, p.axis, place.y);
  if (has_work) {
    device const float* x = input_row(arena, p.x, p.x_row_stride, place.y);
    float v[4];
    tern_u32 largest = 0U;
    for (tern_u32 t = 0; t < 4U; ++t) {
      const tern_u32 k = group * 128U + t * 32U + lane;
      v[t] = k < p.width ? x[k] : 0.0F;
      largest = max(largest, magnitude(v[t]));
    }
    largest = simd_max(largest);
    const float amax = as_type<float>(largest);
    const bool is_finite = largest < 0x7F800000U;
    const bool is_zero = is_finite && amax < gpu::i12_smallest();
    const bool has_values = is_finite && !is_zero;
    const float r = has_values ? gpu::i12_reciprocal(amax) : 0.0F;
    device uchar* record = arena + p.records + place.y * p.record_bytes;
    device short* q = reinterpret_cast<device short*>(record) + group * 128U;
    tern_i32 sum = 0;
    for (tern_u32 t = 0; t < 4U; ++t) {
      const tern_i32 value = has_values ? gpu::i12_value(v[t], r) : 0;
      q[t * 32U + lane] = static_cast<short>(value);
      sum += value;
    }
    sum = simd_sum(sum);
    if (lane == 0U) {
      device float* a = reinterpret_cast<device float*>(record + p.scales_offset);
      const float scale = is_zero ? 0.0F : gpu::i12_scale(amax);
      a[group] = is_finite ? scale : as_type<float>(0x7FC00000U);
      reinterpret_cast<device tern_i32*>(a + groups)[group] = sum;
    }
  }
}
