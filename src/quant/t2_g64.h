// Q2_0: 2-bit codes in groups of 64 with one scale, 18 bytes, 2.25 bits per weight.
#pragma once

#include "quant/t2_rows.h"

namespace tern::quant {

//   bytes 0-1   scale d;   bytes 2-17  codes, four consecutive weights per byte, lowest bits first
using T2G64 = T2Consecutive<64>;
static_assert(sizeof(T2G64) == 18 && T2G64::kBytes == 18);

}  // namespace tern::quant
