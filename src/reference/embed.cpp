// The scalar formulas of embed, written for reading.
#include "reference/embed.h"

#include "reference/linear.h"

namespace tern::reference {

bool embed_row(quant::Format format, const std::byte* table, std::int64_t table_rows,
               std::int64_t width, std::int64_t id, float* y) {
  const bool inside = id >= 0 && id < table_rows;
  const std::uint64_t row_bytes = quant::bytes_for(format, static_cast<std::uint64_t>(width));
  const std::byte* row = inside ? table + static_cast<std::uint64_t>(id) * row_bytes : nullptr;
  for (std::int64_t k = 0; k < width; ++k) y[k] = inside ? decode_weight(format, row, k) : 0.0F;
  return inside;
}

bool gather_row(const float* x, std::int64_t x_row_stride, std::int64_t x_rows, std::int64_t row,
                std::int64_t width, float* y) {
  const bool inside = row >= 0 && row < x_rows;
  for (std::int64_t k = 0; k < width; ++k) y[k] = inside ? x[row * x_row_stride + k] : 0.0F;
  return inside;
}

}  // namespace tern::reference
