// Which problems `tern calibrate` measures: a model's, a file's, or a default set.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tern::backend {

// A product by a weight, as people write it: "f16 4096 576 1,2,8,512" is format, outputs, inputs
// and row counts.
struct CalibrationShape {
  std::string format;  // of the weight: "f32", "f16", "q4_0", "q1_g128"
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::vector<std::int64_t> rows;
  friend bool operator==(const CalibrationShape&, const CalibrationShape&) = default;
};

// The buckets that are measured where nothing else is said: 1 to 512.
[[nodiscard]] std::vector<std::int64_t> default_rows(bool quick);

// Dense weights in the shapes of the models that Tern runs, and shapes where general kernels are
// known to starve: one row by few outputs, small squares at 5, 6 and 17 rows, few tiles with long
// sums, outputs as many as a vocabulary.
[[nodiscard]] std::vector<CalibrationShape> default_shapes(bool quick);

// One shape a line; '#' begins a comment. Errors: kInvalidFile naming the line.
[[nodiscard]] Result<std::vector<CalibrationShape>> parse_shapes(std::string_view text);

}  // namespace tern::backend
