// PTQ1_0: ternary weights as base-3 digits in groups of 128 with one scale, 28 bytes, 1.75 bits per
// weight.
#pragma once

#include "quant/trits.h"

namespace tern::quant {

//   bytes 0-15   five digits each: digit n of byte m is weight       n * 16 + m      (0..79)
//   bytes 16-23  five digits each: digit n of byte 16 + m is weight  80 + n * 8 + m  (80..119)
//   bytes 24-25  four digits each: digit n of byte 24 + m is weight 120 + n * 2 + m  (120..127)
//   bytes 26-27  scale d, IEEE half, little endian
inline constexpr TritRun kT1G128Runs[3] = {{0, 16, 5, 0}, {16, 8, 5, 80}, {24, 2, 4, 120}};
using T1G128 = TritBlock<128, 28, kT1G128Runs>;
static_assert(sizeof(T1G128) == 28);

}  // namespace tern::quant
