// Stands in for <metal_stdlib> when a kernel is compiled for the CPU: the part of MSL that compute
// kernels use. C++14. First line of every file that tools/msl2cpp.py writes.
#pragma once

#include "atomic.h"
#include "base.h"
#include "bind.h"
#include "integer.h"
#include "math.h"
#include "matrix.h"
#include "simd.h"
#include "simdgroup_matrix.h"

inline half operator""h(long double x) { return half(x); }
inline half operator""h(unsigned long long x) { return half(x); }

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define MAXFLOAT __FLT_MAX__
#define MAXHALF (half(65504.0f))
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define HALF_MAX (half(65504.0f))
#define HALF_MIN (half(6.103515625e-5f))
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX 0xffffffffu
#define M_E_F 2.71828183f
#define M_LOG2E_F 1.44269504f
#define M_LN2_F 0.693147181f
#define M_LN10_F 2.30258509f
#define M_PI_F 3.14159265f
#define M_PI_2_F 1.57079633f
#define M_1_PI_F 0.318309886f
#define M_2_SQRTPI_F 1.12837917f
#define M_SQRT2_F 1.41421356f
#define M_SQRT1_2_F 0.707106781f

// Address spaces and the function qualifier. tools/check_address_spaces.sh gives them meaning.
#define kernel
#define device
#define thread
#define threadgroup
#define constant const
