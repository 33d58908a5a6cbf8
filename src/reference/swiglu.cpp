// The scalar formulas of swiglu, written for reading.
#include "reference/swiglu.h"

#include <cmath>

namespace tern::reference {
namespace {

// The limits: silu(-Inf) = 0 (not -Inf / Inf), silu(+Inf) = Inf.
double silu_f64(float g) {
  if (std::isinf(g)) return g > 0 ? static_cast<double>(g) : 0.0;
  return static_cast<double>(g) / (1 + std::exp(-static_cast<double>(g)));
}

}  // namespace

float silu(float g) { return static_cast<float>(silu_f64(g)); }

float swiglu(float gate, float up) {
  return static_cast<float>(silu_f64(gate) * static_cast<double>(up));
}

}  // namespace tern::reference
