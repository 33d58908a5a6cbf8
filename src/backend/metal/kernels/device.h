// What the Metal kernels share: where a step's rows are, rows of floats, and the export of a
// parameter block's layout.
#pragma once

#include <metal_stdlib>

#include "backend/gpu/params/layout.h"
#include "backend/gpu/params/rows.h"

// Every sum and product is rounded where it is written; explicit fma() fuses.
#pragma METAL fp contract(off)

// Metal has no pointer without an address space, not even in sizeof.
#undef TERN_LAYOUT_FIELD
#define TERN_LAYOUT_FIELD(hash, type, field)                                             \
  (((hash)*16777619U) ^ (static_cast<tern_u32>(__builtin_offsetof(type, field)) * 257U + \
                         static_cast<tern_u32>(sizeof(type::field))))

// A kernel of one thread beside an entry point: writes size and layout of its parameter block.
#undef TERN_EXPORT_LAYOUT
#define TERN_EXPORT_LAYOUT(entry, type, layout)                                    \
  kernel void entry##_params_mark(device tern_u64* mark [[buffer(0)]],             \
                                  uint thread_index [[thread_position_in_grid]]) { \
    if (thread_index == 0U) {                                                      \
      mark[0] = sizeof(type);                                                      \
      mark[1] = layout;                                                            \
    }                                                                              \
  }

namespace tern {

using namespace metal;

// Whether row `row` of the axis is part of this step.
inline bool has_row(device const uchar* block, tern_u32 axis, tern_u32 row) {
  if (axis == kTernAllRows) return true;
  device const TernBatchCounts* counts = reinterpret_cast<device const TernBatchCounts*>(block);
  return row < (axis == kTernRows ? counts->rows : counts->output_rows);
}

inline device const float* input_row(device const uchar* arena, tern_u64 offset, tern_u64 stride,
                                     tern_u32 row) {
  return reinterpret_cast<device const float*>(arena + offset) + row * stride;
}
inline device float* output_row(device uchar* arena, tern_u64 offset, tern_u64 stride,
                                tern_u32 row) {
  return reinterpret_cast<device float*>(arena + offset) + row * stride;
}

// Magnitudes order as unsigned integers, with Inf and NaN on top.
inline tern_u32 magnitude(float x) { return as_type<uint>(x) & 0x7FFFFFFFU; }

}  // namespace tern
