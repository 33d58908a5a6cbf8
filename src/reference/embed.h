// embed and gather_rows: rows of a table by number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/format.h"

namespace tern::reference {

// y[k] = W[id][k] for a table of the file with `table_rows` rows of `width` weights. An id out of
// range writes zeros and returns false.
[[nodiscard]] bool embed_row(quant::Format format, const std::byte* table, std::int64_t table_rows,
                             std::int64_t width, std::int64_t id, float* y);

// y[k] = x[row][k]; a row out of range writes zeros and returns false.
[[nodiscard]] bool gather_row(const float* x, std::int64_t x_row_stride, std::int64_t x_rows,
                              std::int64_t row, std::int64_t width, float* y);

}  // namespace tern::reference
