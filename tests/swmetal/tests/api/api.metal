// Kernels for the tests of the fake Metal interface.
#include <metal_stdlib>
using namespace metal;

constant bool kDouble [[function_constant(0)]];
constant uint kAdd [[function_constant(1)]];
constant uint kMaybe [[function_constant(2)]];
constant uint kTotal = kAdd + (kDouble ? 10u : 0u);

kernel void fill(device uint* out [[buffer(0)]], constant uint& value [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
  out[i] = value;
}

// out = 2 * out + step: the result tells in which order dispatches ran.
kernel void step(device uint* out [[buffer(0)]], constant uint& value [[buffer(1)]]) {
  out[0] = 2 * out[0] + value;
}

kernel void constants(device uint* out [[buffer(0)]]) { out[0] = kTotal; }

static inline uint through_a_function(uint x) { return x + kAdd; }
kernel void indirect_constant(device uint* out [[buffer(0)]]) { out[0] = through_a_function(1); }

kernel void optional_constant(device uint* out [[buffer(0)]]) {
  out[0] = is_function_constant_defined(kMaybe) ? kMaybe : 77u;
}

kernel void optional_buffer(device uint* out [[buffer(0)]],
                            device const uint* extra [[buffer(1), function_constant(kDouble)]]) {
  out[0] = kDouble ? extra[0] : 5u;
}

[[max_total_threads_per_threadgroup(64)]] kernel void small_groups(device uint* out [[buffer(0)]]) {
  out[0] = 1;
}

kernel void wants_struct(device uint* out [[buffer(0)]], constant uint4& v [[buffer(1)]]) {
  out[0] = v.x;
}

kernel void group_memory(device uint* out [[buffer(0)]], threadgroup uint* s [[threadgroup(0)]],
                         uint i [[thread_index_in_threadgroup]]) {
  s[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = s[31 - i];
}

kernel void too_much_group_memory(device uint* out [[buffer(0)]],
                                  uint i [[thread_index_in_threadgroup]]) {
  threadgroup uint s[9000];
  s[i] = i;
  out[i] = s[i];
}

kernel void diverges(device uint* out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  uint x = i;
  if (i < 16) x = simd_sum(x);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = x;
}

kernel void sizes(device uint* out [[buffer(0)]], uint3 grid [[threads_per_grid]],
                  uint3 groups [[threadgroups_per_grid]], uint3 i [[thread_position_in_grid]]) {
  if (i.x != 0) return;
  out[0] = grid.x;
  out[1] = groups.x;
}
