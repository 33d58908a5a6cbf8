// Must be refused: a buffer index above 30.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(31)]]) { a[0] = 1; }
