// Formulas of packed products: from the sum of the selected integers to a group's term.
#pragma once

#include "backend/gpu/math/types.h"

namespace tern {
namespace gpu {

// Plane p of a 12-bit two's complement integer weighs 2^p, plane 11 weighs -2048.
TERN_FORMULA tern_i32 plane_weight(tern_i32 plane) { return plane == 11 ? -2048 : 1 << plane; }

// Codes of binary weights are -1 and +1, so a group's integer is twice the sum of q where the bit
// is 1, minus the sum of q. |result| <= 128 * 2047 = 262,016, exact in f32.
TERN_FORMULA tern_i32 binary_integer(tern_i32 twice_selected, tern_i32 sum) {
  return twice_selected - sum;
}

}  // namespace gpu
}  // namespace tern
