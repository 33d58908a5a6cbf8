// The rule of 12-bit activations (one scale per 128 inputs), one value at a time.
#pragma once

#include "backend/gpu/math/types.h"

namespace tern {
namespace gpu {

// Groups whose largest magnitude lies below this become zeros with scale 0 (2^-100).
TERN_FORMULA float i12_smallest() { return 7.888609052210118e-31F; }
// One correctly rounded division each.
TERN_FORMULA float i12_scale(float amax) { return amax / 2047.0F; }
TERN_FORMULA float i12_reciprocal(float amax) { return 2047.0F / amax; }

// rint(x * r), ties to even, clamped to +-2047. Adding 1.5 * 2^23 leaves no bits below one, so the
// addition itself rounds; |x * r| stays below 2^22 because r is 2047 / max |x|.
TERN_FORMULA tern_i32 i12_value(float x, float r) {
  const float product = x * r;
  const float rounded = (product + 12582912.0F) - 12582912.0F;
  const float low = rounded < -2047.0F ? -2047.0F : rounded;
  return static_cast<tern_i32>(low > 2047.0F ? 2047.0F : low);
}

}  // namespace gpu
}  // namespace tern
