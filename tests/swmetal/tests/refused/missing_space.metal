// Must be refused: a pointer without an address space (only the address-space pass sees it).
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]], threadgroup float* s [[threadgroup(0)]],
              uint i [[thread_position_in_grid]]) {
  float* p = a;
  s[i] = p[i];
}
