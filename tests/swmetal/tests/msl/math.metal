// Every floating-point function of the shim, on scalars; half and vectors are compared with the
// scalars here, lane by lane, and the differences counted.
#include <metal_stdlib>
using namespace metal;

// Both are the same number, or both are NaN.
static inline bool same(float a, float b) { return a == b || (isnan(a) && isnan(b)); }

kernel void math1(device const float* in [[buffer(0)]], device float* out [[buffer(1)]],
                  device atomic_uint* differences [[buffer(2)]], constant uint& n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
  uint row = 0;
#define SWM_ROW(name, reference, from, to)                                                 \
  {                                                                                        \
    device const float* a = in + row * n;                                                  \
    const float x = a[i], y = a[(i + 1) % n];                                              \
    const float r = metal::name(x);                                                        \
    const float4 v = metal::name(float4(x, y, x, y));                                      \
    const float3 w = metal::name(float3(y, x, y));                                         \
    const float2 u = metal::name(float2(x, y));                                            \
    const half h = metal::name(half(x));                                                   \
    const half4 k = metal::name(half4(half(y), half(x), half(y), half(x)));                \
    bool good = same(v.x, r) && same(v.z, r) && same(w.y, r) && same(u.x, r);              \
    good = good && same(v.y, w.x) && same(u.y, w.z);                                       \
    good = good && same(float(h), float(half(metal::name(float(half(x))))));               \
    good = good && same(float(h), float(k.y)) && same(float(k.w), float(h));               \
    if (!good) atomic_fetch_add_explicit(&differences[row], 1u, memory_order_relaxed);     \
    out[row * n + i] = r;                                                                  \
    row++;                                                                                 \
  }
#include "math1.inc"
#undef SWM_ROW
}

kernel void math2(device const float* in [[buffer(0)]], device float* out [[buffer(1)]],
                  device atomic_uint* differences [[buffer(2)]], constant uint& n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
  uint row = 0;
#define SWM_ROW(name, reference)                                                           \
  {                                                                                        \
    const float x = in[i], y = in[n + i];                                                  \
    const float r = metal::name(x, y);                                                     \
    const float4 v = metal::name(float4(x, y, x, 1.0f), float4(y, x, y, 2.0f));            \
    const float3 w = metal::name(float3(x), y);                                            \
    const half2 k = metal::name(half2(half(x), half(y)), half2(half(y), half(x)));         \
    bool good = same(v.x, r) && same(v.z, r) && same(w.y, r);                              \
    good = good && same(v.y, metal::name(y, x));                                           \
    good = good && same(float(k.x), float(metal::name(half(x), half(y))));                 \
    if (!good) atomic_fetch_add_explicit(&differences[row], 1u, memory_order_relaxed);     \
    out[row * n + i] = r;                                                                  \
    row++;                                                                                 \
  }
#include "math2.inc"
#undef SWM_ROW
}

// One result a cell; the test has the numbers.
kernel void math_rest(device float* o [[buffer(0)]]) {
  const float inf = INFINITY, nan = NAN;
  o[0] = fma(3.0f, 4.0f, 5.0f);
  o[1] = float(fma(half(0.1f), half(0.1f), half(-0.01f)));
  o[2] = clamp(5.0f, 0.0f, 1.0f);
  o[3] = clamp(float4(-1, 0.5f, 2, 3), 0.0f, 1.0f).w;
  o[4] = mix(2.0f, 4.0f, 0.25f);
  o[5] = mix(float2(0, 1), float2(2, 3), 0.5f).y;
  o[6] = smoothstep(0.0f, 1.0f, 0.25f);
  o[7] = float(isnan(nan)) + 2 * float(isinf(-inf)) + 4 * float(isfinite(1.0f)) +
         8 * float(isnormal(1.0f)) + 16 * float(signbit(-0.0f)) + 32 * float(isordered(1.0f, 2.0f)) +
         64 * float(isunordered(1.0f, nan));
  o[8] = float(isnan(1.0f) || isinf(nan) || isfinite(nan) || isnormal(0.0f) || signbit(1.0f));
  o[9] = fmax(nan, 1.0f) + fmin(1.0f, nan);
  o[10] = min3(3.0f, 1.0f, 2.0f) + 10 * max3(3.0f, 1.0f, 2.0f) + 100 * median3(3.0f, 1.0f, 2.0f);
  o[11] = float(min3(3, 1, 2) + 10 * max3(3, 1, 2) + 100 * median3(2, 3, 1));
  float c, whole;
  int exponent;
  o[12] = sincos(0.0f, c) + c;
  o[13] = modf(-2.75f, whole);
  o[14] = whole;
  o[15] = ldexp(3.0f, 4);
  o[16] = frexp(48.0f, exponent);
  o[17] = float(exponent);
  o[18] = float(ilogb(9.0f));
  o[19] = nextafter(1.0f, 2.0f);
  o[20] = dot(float3(1, 2, 3), float3(4, 5, 6));
  o[21] = cross(float3(1, 0, 0), float3(0, 1, 0)).z;
  o[22] = length(float2(3, 4)) + distance(float2(1, 1), float2(4, 5));
  o[23] = length_squared(float2(3, 4)) + distance_squared(float2(0, 0), float2(1, 2));
  o[24] = normalize(float3(0, 5, 0)).y;
  o[25] = reflect(float2(1, -1), float2(0, 1)).y;
  o[26] = fast::exp(0.0f) + precise::sqrt(16.0f);
  o[27] = float(any(bool4(false, false, true, false))) + 2 * float(all(bool2(true, true))) +
          4 * float(all(float2(1, 0) != float2(0, 0)));
  o[28] = select(float4(1, 2, 3, 4), float4(5, 6, 7, 8), bool4(false, true, false, true)).w;
  o[29] = select(1.0f, 2.0f, false);
  o[30] = exp(-inf) + float(isnan(log(-1.0f))) + float(isinf(rsqrt(0.0f)));
  o[31] = unpack_unorm4x8_to_float(0xff00ff33u).x;
  o[32] = unpack_snorm4x8_to_float(0x000081ffu).y;
  o[33] = float(pack_float_to_unorm4x8(float4(0, 1, 0.5f, 2)));
  o[34] = float(pack_float_to_snorm4x8(float4(-1, 0, 0, 0)));
  o[35] = unpack_unorm2x16_to_float(0xffff0000u).y;
  o[36] = max(half(1.0f), 2.0f);
  o[37] = float(bfloat(1.0f) + bfloat(0.001f));
  o[38] = float(exp(bfloat(0.0f)));
}
