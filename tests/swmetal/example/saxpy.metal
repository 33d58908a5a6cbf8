// y = a * x + y, and the sum of y: the worked example of docs/software-metal.md.
#include <metal_stdlib>
using namespace metal;

constant bool kAccumulate [[function_constant(0)]];

kernel void saxpy(device const float* x [[buffer(0)]],
                  device float* y [[buffer(1)]],
                  constant float& a [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  y[i] = kAccumulate ? a * x[i] + y[i] : a * x[i];
}

// One threadgroup; n values; result[0] = their sum.
kernel void sum(device const float* values [[buffer(0)]],
                constant uint& n [[buffer(1)]],
                device float* result [[buffer(2)]],
                uint thread_index [[thread_index_in_threadgroup]],
                uint threads [[threads_per_threadgroup]],
                uint lane [[thread_index_in_simdgroup]],
                uint group [[simdgroup_index_in_threadgroup]],
                uint groups [[simdgroups_per_threadgroup]]) {
  threadgroup float partial[32];
  float own = 0.0f;
  for (uint i = thread_index; i < n; i += threads) own += values[i];
  own = simd_sum(own);
  if (lane == 0) partial[group] = own;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index == 0) {
    float total = 0.0f;
    for (uint g = 0; g < groups; g++) total += partial[g];
    result[0] = total;
  }
}
