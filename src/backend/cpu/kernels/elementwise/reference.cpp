// Elementwise helpers in portable code.
#include <cmath>
#include <cstring>

#include "backend/cpu/kernels/elementwise/kernels.h"
#include "reference/add.h"
#include "reference/embed.h"

namespace tern::cpu {

void add_reference(const AddArgs& args, int row_begin, int row_end) {
  for (int r = row_begin; r < row_end; ++r) {
    reference::add(args.a + r * args.a_row_stride, args.b + r * args.b_row_stride, args.width,
                   args.y + r * args.y_row_stride);
  }
}

bool has_non_finite_reference(const float* x, std::int64_t row_stride, std::int64_t width,
                              int row_begin, int row_end) {
  for (int r = row_begin; r < row_end; ++r) {
    for (std::int64_t c = 0; c < width; ++c) {
      if (!std::isfinite(x[r * row_stride + c])) return true;
    }
  }
  return false;
}

bool gather_rows(const float* x, std::int64_t x_row_stride, std::int64_t x_rows,
                 const std::uint32_t* rows, float* y, std::int64_t y_row_stride, std::int64_t width,
                 int begin, int end) {
  bool all_inside = true;
  for (int i = begin; i < end; ++i) {
    all_inside &=
        reference::gather_row(x, x_row_stride, x_rows, rows[i], width, y + i * y_row_stride);
  }
  return all_inside;
}

void copy_rows(const float* x, std::int64_t x_row_stride, float* y, std::int64_t y_row_stride,
               std::int64_t width, int row_begin, int row_end) {
  if (width == 0) return;
  for (int r = row_begin; r < row_end; ++r) {
    std::memcpy(y + r * y_row_stride, x + r * x_row_stride,
                static_cast<std::size_t>(width) * sizeof(float));
  }
}

}  // namespace tern::cpu
