// Must be refused: a parameter that is neither bound nor a position.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]], float4 p [[stage_in]]) { a[0] = p.x; }
