// Must be refused: goto.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]]) {
again:
  goto again;
}
