// The intrinsics of AVX-512 without the false alarms of gcc 12 in its own header.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
// _mm512_undefined_ps() is a variable initialised with itself, on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>
