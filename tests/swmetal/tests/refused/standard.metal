// Must be refused: the C++ library.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]]) { a[0] = std::abs(a[0]); }
