// Must be refused: 80 KB of private arrays a thread.
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* o [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  float big[20000];
  for (uint k = 0; k < 20000; k++) big[k] = float(k + i);
  float x = 0;
  for (uint k = 0; k < 20000; k++) x += big[(k * 7) % 20000];
  o[i] = x;
}
