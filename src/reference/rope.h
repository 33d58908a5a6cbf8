// rope: rotates pairs of elements of one head by angles in radians.
#pragma once

namespace tern::reference {

// Pair j of dims / 2: elements (j, j + dims / 2), or (2j, 2j + 1) when `adjacent`; elements from
// `dims` on are copied. angle_j = position * frequency[j]; cos and sin are multiplied by `factor`.
// f64 inside, rounded once. y may be x.
void rope(const float* x, int head_dim, int dims, bool adjacent, const double* frequency,
          double factor, long long position, float* y);

}  // namespace tern::reference
