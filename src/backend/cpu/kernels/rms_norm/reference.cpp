// rms_norm in portable code: the formula of the reference, row by row.
#include "backend/cpu/kernels/rms_norm/kernels.h"
#include "reference/add.h"
#include "reference/rms_norm.h"

namespace tern::cpu {

void rms_norm_reference(const RmsNormArgs& args, int row_begin, int row_end) {
  const std::int64_t columns = static_cast<std::int64_t>(args.heads) * args.width;
  for (int r = row_begin; r < row_end; ++r) {
    const float* x = args.x + r * args.x_row_stride;
    if (args.residual != nullptr) {
      float* sum = args.sum + r * args.sum_row_stride;
      reference::add(x, args.residual + r * args.residual_row_stride, columns, sum);
      x = sum;
    }
    float* y = args.y + r * args.y_row_stride;
    for (std::int64_t c = 0; c < columns; c += args.width) {
      reference::rms_norm(x + c, args.weight, args.width, args.eps, y + c);
    }
  }
}

}  // namespace tern::cpu
