// PQ2_0, and the older form of Q2_0: 2-bit codes in groups of 128 with one scale, 34 bytes, 2.125
// bits per weight.
#pragma once

#include "quant/t2_rows.h"

namespace tern::quant {

//   bytes 0-1   scale d;   bytes 2-33  codes, four consecutive weights per byte, lowest bits first
using T2G128 = T2Consecutive<128>;
static_assert(sizeof(T2G128) == 34 && T2G128::kBytes == 34);

}  // namespace tern::quant
