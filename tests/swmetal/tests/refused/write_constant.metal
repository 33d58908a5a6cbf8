// Must be refused: a write to constant memory.
#include <metal_stdlib>
using namespace metal;
kernel void f(constant float* c [[buffer(0)]]) { c[0] = 1.0f; }
