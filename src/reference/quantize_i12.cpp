// Quantisation of activations to 12-bit integers, in plain scalar arithmetic.
#include "reference/quantize_i12.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tern::reference {

void quantize_i12(std::span<const float> x, std::span<std::int16_t> q, std::span<float> a) {
  for (std::size_t begin = 0; begin < x.size(); begin += kI12Group) {
    const std::size_t end = std::min(x.size(), begin + kI12Group);
    float amax = 0.0f;
    bool finite = true;
    for (std::size_t k = begin; k < end; ++k) {
      finite = finite && std::isfinite(x[k]);
      amax = std::max(amax, std::fabs(x[k]));
    }
    float& scale = a[begin / kI12Group];
    std::fill(q.begin() + static_cast<std::ptrdiff_t>(begin),
              q.begin() + static_cast<std::ptrdiff_t>(end), std::int16_t{0});
    if (!finite) {
      scale = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    if (amax < 0x1p-100f) {
      scale = 0.0f;
      continue;
    }
    scale = amax / 2047.0f;
    const float r = 2047.0f / amax;
    for (std::size_t k = begin; k < end; ++k) {
      const float product = x[k] * r;
      const float rounded = std::nearbyint(product);  // ties to even in the default rounding mode
      q[k] = static_cast<std::int16_t>(std::clamp(rounded, -2047.0f, 2047.0f));
    }
  }
}

}  // namespace tern::reference
