// rope: rotates pairs of elements of each head by position * frequency.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu_features.h"

namespace tern::cpu {

// Which elements of a head form pair j of n = rope_dims / 2 pairs.
enum class RopeMode : std::uint8_t {
  kHalves,    // j and j + n
  kAdjacent,  // 2j and 2j + 1
};

// Tables of one step, shared by all layers, made once: for rows [row_begin, row_end) and pair j
//   cos[r * pairs + j] = float(factor * cos(positions[r] * frequency[j])), sin likewise.
// Angles and functions are f64, so that position 262,143 keeps its angle. `factor` is the attention
// factor m. Threads: any split of rows.
void rope_tables(const double* frequency, int pairs, double factor, const std::int32_t* positions,
                 float* cos, float* sin, int row_begin, int row_end);

// Head h of row r is head_dim floats at x + r * x_row_stride + h * head_dim (likewise y). Strides
// in floats.
struct RopeArgs {
  const float* x = nullptr;
  std::int64_t x_row_stride = 0;
  float* y = nullptr;  // may be x exactly (equal stride); no other overlap
  std::int64_t y_row_stride = 0;
  int heads = 0;
  int head_dim = 0;
  int rope_dims = 0;  // even, 0 <= rope_dims <= head_dim; the rest of a head is copied
  RopeMode mode = RopeMode::kHalves;
  const float* cos = nullptr;  // [rows][rope_dims / 2], row r of x uses row r of the tables
  const float* sin = nullptr;
};

// (a, b) -> (a cos - b sin, a sin + b cos) for rows [row_begin, row_end), each product and each sum
// rounded once to f32 (no fma), so all variants return the same bits. Class F against f64 of the
// same tables. Threads: any split of rows; nothing outside of the given rows is written.
using RopeFn = void (*)(const RopeArgs& args, int row_begin, int row_end);

struct RopeVariant {
  const char* name;
  CpuFeatures needs;
  RopeFn run;
};

// Fastest first; the last needs nothing.
[[nodiscard]] std::span<const RopeVariant> rope_variants();

}  // namespace tern::cpu
