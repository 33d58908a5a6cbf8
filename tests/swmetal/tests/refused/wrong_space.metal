// Must be refused: a threadgroup pointer where a device pointer belongs.
#include <metal_stdlib>
using namespace metal;
inline float first(device const float* p) { return p[0]; }
kernel void f(device float* a [[buffer(0)]], threadgroup float* s [[threadgroup(0)]],
              uint i [[thread_position_in_grid]]) {
  s[i] = a[i];
  a[i] = first(s);
}
