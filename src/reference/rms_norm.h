// rms_norm: y = x / sqrt(mean(x^2) + eps) * weight over one run of `width` values.
#pragma once

namespace tern::reference {

// f64 inside, each result rounded once. A zero run gives zeros, also with eps = 0. y may be x.
void rms_norm(const float* x, const float* weight, int width, float eps, float* y);

}  // namespace tern::reference
