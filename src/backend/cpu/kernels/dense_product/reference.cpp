// dense_product in portable code: the f64 sums of the reference, and embedding rows.
#include "backend/cpu/kernels/dense_product/kernels.h"
#include "reference/embed.h"
#include "reference/linear.h"

namespace tern::cpu {
namespace {

std::int64_t element_bytes(quant::Format format) { return quant::info(format).block_bytes; }

}  // namespace

void dense_product_reference(const DenseProductArgs& args, int row_begin, int row_end,
                             std::int64_t out_begin, std::int64_t out_end) {
  for (int r = row_begin; r < row_end; ++r) {
    for (std::int64_t n = out_begin; n < out_end; ++n) {
      const std::byte* w = args.w + n * args.w_row_stride * element_bytes(args.format);
      const float* x = args.x + r * args.x_row_stride;
      auto sum = static_cast<float>(reference::linear_row(args.format, w, x, args.inputs).value);
      if (args.bias != nullptr) sum = sum + args.bias[n];
      if (args.residual != nullptr) {
        sum = args.residual[r * args.residual_row_stride + n] + sum;
      }
      args.y[r * args.y_row_stride + n] = sum;
    }
  }
}

bool dense_embed(quant::Format format, const std::byte* table, std::int64_t table_row_stride,
                 std::int64_t table_rows, std::int64_t width, const std::int32_t* ids, float* y,
                 std::int64_t y_row_stride, int begin, int end) {
  bool all_inside = true;
  for (int i = begin; i < end; ++i) {
    const bool inside = ids[i] >= 0 && ids[i] < table_rows;
    const std::byte* row =
        inside ? table + ids[i] * table_row_stride * element_bytes(format) : nullptr;
    // A table of one row, so that the row's stride does not matter.
    all_inside &= reference::embed_row(format, row, inside ? 1 : 0, width, 0, y + i * y_row_stride);
  }
  return all_inside;
}

}  // namespace tern::cpu
