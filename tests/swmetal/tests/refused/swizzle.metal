// Must be refused: assignment to a swizzle that repeats.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]]) {
  float4 v = float4(1);
  v.xx = float2(1, 2);
  a[0] = v.x;
}
