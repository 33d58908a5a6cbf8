// The scalar formulas of rms_norm, written for reading.
#include "reference/rms_norm.h"

#include <cmath>

namespace tern::reference {

void rms_norm(const float* x, const float* weight, int width, float eps, float* y) {
  double sum = 0;
  for (int i = 0; i < width; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double mean = sum / width + static_cast<double>(eps);
  const double scale = mean == 0 ? 0 : 1 / std::sqrt(mean);
  for (int i = 0; i < width; ++i) {
    y[i] = static_cast<float>(static_cast<double>(x[i]) * scale * static_cast<double>(weight[i]));
  }
}

}  // namespace tern::reference
