// Must be refused: arithmetic between vectors of different types.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]]) {
  float4 v = float4(1) + half4(1);
  a[0] = v.x;
}
