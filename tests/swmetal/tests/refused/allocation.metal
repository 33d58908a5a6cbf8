// Must be refused: new.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]]) { a[0] = *new float(1.0f); }
