// swiglu: silu(gate) * up, element by element.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu_features.h"

namespace tern::cpu {

// A joined projection [gate | up] is gate = base, up = base + width, both with the stride of the
// joined row.
struct SwigluArgs {
  const float* gate = nullptr;  // [rows][width]
  std::int64_t gate_row_stride = 0;
  const float* up = nullptr;  // [rows][width]
  std::int64_t up_row_stride = 0;
  float* y = nullptr;  // [rows][width]; may be gate or up exactly (equal stride)
  std::int64_t y_row_stride = 0;
  int width = 0;
};

// y = gate / (1 + exp(-gate)) * up for rows [row_begin, row_end) and columns [column_begin,
// column_end). silu: class T (4 ulp); silu(-Inf) = 0 and silu of a large negative number is 0 or
// -0, never NaN; silu(+Inf) = Inf; NaN stays NaN. An element's bits do not depend on where it
// stands. Threads: any split of rows and columns.
using SwigluFn = void (*)(const SwigluArgs& args, int row_begin, int row_end, int column_begin,
                          int column_end);

struct SwigluVariant {
  const char* name;
  CpuFeatures needs;
  SwigluFn run;
};

// Fastest first; the last needs nothing.
[[nodiscard]] std::span<const SwigluVariant> swiglu_variants();

}  // namespace tern::cpu
