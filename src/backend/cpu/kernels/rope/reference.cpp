// rope in portable code, and the tables of cos and sin that all variants read.
#include <cmath>

#include "backend/cpu/kernels/rope/kernels.h"

namespace tern::cpu {

void rope_tables(const double* frequency, int pairs, double factor, const std::int32_t* positions,
                 float* cos, float* sin, int row_begin, int row_end) {
  for (std::int64_t r = row_begin; r < row_end; ++r) {
    for (int j = 0; j < pairs; ++j) {
      const double angle = static_cast<double>(positions[r]) * frequency[j];
      cos[r * pairs + j] = static_cast<float>(factor * std::cos(angle));
      sin[r * pairs + j] = static_cast<float>(factor * std::sin(angle));
    }
  }
}

// The reference takes angles, kernels take tables: this is the same formula on the tables.
void rope_reference(const RopeArgs& args, int row_begin, int row_end) {
  const int pairs = args.rope_dims / 2;
  const bool adjacent = args.mode == RopeMode::kAdjacent;
  for (int r = row_begin; r < row_end; ++r) {
    const float* cos = args.cos + static_cast<std::int64_t>(r) * pairs;
    const float* sin = args.sin + static_cast<std::int64_t>(r) * pairs;
    for (std::int64_t h = 0; h < args.heads; ++h) {
      const float* x = args.x + r * args.x_row_stride + h * args.head_dim;
      float* y = args.y + r * args.y_row_stride + h * args.head_dim;
      for (int j = 0; j < pairs; ++j) {
        const int first = adjacent ? 2 * j : j;
        const int second = adjacent ? 2 * j + 1 : j + pairs;
        const float a = x[first];
        const float b = x[second];
        y[first] = a * cos[j] - b * sin[j];
        y[second] = b * cos[j] + a * sin[j];
      }
      for (int i = args.rope_dims; i < args.head_dim; ++i) y[i] = x[i];
    }
  }
}

}  // namespace tern::cpu
