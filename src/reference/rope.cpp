// The scalar formulas of rope, written for reading.
#include "reference/rope.h"

#include <cmath>

namespace tern::reference {

void rope(const float* x, int head_dim, int dims, bool adjacent, const double* frequency,
          double factor, long long position, float* y) {
  const int pairs = dims / 2;
  for (int j = 0; j < pairs; ++j) {
    const int first = adjacent ? 2 * j : j;
    const int second = adjacent ? 2 * j + 1 : j + pairs;
    const double angle = static_cast<double>(position) * frequency[j];
    const double a = static_cast<double>(x[first]);
    const double b = static_cast<double>(x[second]);
    y[first] = static_cast<float>(factor * (a * std::cos(angle) - b * std::sin(angle)));
    y[second] = static_cast<float>(factor * (a * std::sin(angle) + b * std::cos(angle)));
  }
  for (int i = dims; i < head_dim; ++i) y[i] = x[i];
}

}  // namespace tern::reference
