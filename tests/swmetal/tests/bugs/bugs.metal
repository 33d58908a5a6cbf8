// Kernels with one mistake each, which the emulator must find, and their right twins, which it must
// let pass. Bound: x and y of 64 floats, c of 16, threadgroup memory of 64.
#include <metal_stdlib>
using namespace metal;

kernel void device_read_beyond(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                               uint i [[thread_position_in_grid]]) {
  y[i] = x[i + 1];
}

kernel void device_write_beyond(device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  y[i + 1] = 1.0f;
}

kernel void constant_read_beyond(constant float* c [[buffer(2)]], device float* y [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  y[i] = c[i];
}

kernel void group_write_beyond(threadgroup float* s [[threadgroup(0)]],
                               uint i [[thread_position_in_grid]]) {
  s[i + 1] = 1.0f;
}

kernel void group_variable_beyond(device float* y [[buffer(1)]],
                                  uint i [[thread_position_in_grid]]) {
  threadgroup float s[63];
  threadgroup float* p = s;
  p[i] = 1.0f;
  y[i] = p[i];
}

kernel void misaligned(device uchar* x [[buffer(0)]], device float* y [[buffer(1)]]) {
  y[0] = *(device float*)(x + 1);
}

kernel void shift_by_width(device uint* y [[buffer(1)]], uint n [[threads_per_grid]]) {
  y[0] = 1u << (n / 2);
}

kernel void signed_overflow(device int* y [[buffer(1)]], uint n [[threads_per_grid]]) {
  y[0] = 2147483647 + int(n);
}

kernel void lane_beyond(device float* y [[buffer(1)]], uint n [[threads_per_grid]]) {
  float4 v = float4(1.0f);
  y[0] = v[n];
}

// Reads what nobody wrote: the poison (a NaN) comes out.
kernel void uninitialised(device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  threadgroup float s[64];
  if (i != 5) s[i] = float(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = s[i];
}

kernel void missing_barrier(device float* y [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[i] = float(i);
  y[i] = s[63 - i];
}

kernel void with_barrier(device float* y [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[i] = float(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = s[63 - i];
}

// Right in forward order: lane i reads what lane i - 1 wrote.
kernel void lockstep(device float* y [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[i] = float(i);
  y[i] = i > 0 ? s[i - 1] : 0.0f;
}

// A collective orders nothing in memory.
kernel void lockstep_after_sum(device float* y [[buffer(1)]],
                               uint i [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[i] = float(i);
  const float sum = simd_sum(1.0f);
  y[i] = s[i ^ 1] + sum;
}

kernel void with_simd_barrier(device float* y [[buffer(1)]],
                              uint i [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[i] = float(i);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = s[i ^ 1] + simd_sum(1.0f);
}

// Every threadgroup adds to one cell.
kernel void between_groups(device float* y [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {
  if (i == 0) y[0] += 1.0f;
}

kernel void between_groups_atomic(device atomic_uint* y [[buffer(1)]],
                                  uint i [[thread_index_in_threadgroup]]) {
  if (i == 0) atomic_fetch_add_explicit(y, 1u, memory_order_relaxed);
}

kernel void deep_stack(device float* y [[buffer(1)]], uint n [[threads_per_grid]]) {
  float big[4000];
  for (uint k = 0; k < 4000; k++) big[k] = float(k + n);
  float sum = 0.0f;
  for (uint k = 0; k < 4000; k++) sum += big[(k * 7) % 4000];
  y[0] = sum;
}

kernel void early_exit(device float* y [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {
  if (i >= 64) return;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = float(i);
}
