// Must be refused: an implicit conversion between vectors.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]]) {
  float4 v = int4(1);
  a[0] = v.x;
}
