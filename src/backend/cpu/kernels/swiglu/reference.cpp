// swiglu in portable code: the reference, value by value.
#include "backend/cpu/kernels/swiglu/kernels.h"
#include "reference/swiglu.h"

namespace tern::cpu {

void swiglu_reference(const SwigluArgs& args, int row_begin, int row_end, int column_begin,
                      int column_end) {
  for (int r = row_begin; r < row_end; ++r) {
    const float* gate = args.gate + r * args.gate_row_stride;
    const float* up = args.up + r * args.up_row_stride;
    float* y = args.y + r * args.y_row_stride;
    for (int c = column_begin; c < column_end; ++c) y[c] = reference::swiglu(gate[c], up[c]);
  }
}

}  // namespace tern::cpu
