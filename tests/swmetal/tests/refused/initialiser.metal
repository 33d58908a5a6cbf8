// Must be refused: a threadgroup variable with an initialiser.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]]) {
  threadgroup float s[2] = {1.0f, 2.0f};
  a[0] = s[0];
}
