// TQ1_0: ternary weights as base-3 digits in groups of 256 with one scale, 54 bytes, 1.6875 bits
// per weight.
#pragma once

#include "quant/trits.h"

namespace tern::quant {

//   bytes 0-31   five digits each: digit n of byte m is weight        n * 32 + m      (0..159)
//   bytes 32-47  five digits each: digit n of byte 32 + m is weight 160 + n * 16 + m  (160..239)
//   bytes 48-51  four digits each: digit n of byte 48 + m is weight 240 + n * 4 + m   (240..255)
//   bytes 52-53  scale d, IEEE half, little endian
inline constexpr TritRun kT1G256Runs[3] = {{0, 32, 5, 0}, {32, 16, 5, 160}, {48, 4, 4, 240}};
using T1G256 = TritBlock<256, 54, kT1G256Runs>;
static_assert(sizeof(T1G256) == 54);

}  // namespace tern::quant
