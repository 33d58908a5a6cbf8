// The scalar formulas of argmax, written for reading.
#include "reference/argmax.h"

#include <cmath>

namespace tern::reference {

Argmax argmax(const float* x, std::int64_t begin, std::int64_t end) {
  Argmax best;
  for (std::int64_t i = begin; i < end; ++i) {
    if (std::isnan(x[i])) {
      best.has_nan = true;
      continue;
    }
    if (std::isfinite(x[i])) best.has_finite = true;
    if (best.index < 0 || x[i] > x[best.index]) best.index = i;
  }
  return best;
}

}  // namespace tern::reference
