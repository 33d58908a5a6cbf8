// Must be refused: a double.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]]) {
  double d = a[0];
  a[0] = d;
}
