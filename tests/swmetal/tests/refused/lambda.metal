// Must be refused: a lambda expression.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* a [[buffer(0)]]) {
  auto g = [&](int i) { return i; };
  a[0] = g(1);
}
