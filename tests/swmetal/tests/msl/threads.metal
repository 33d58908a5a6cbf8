// Positions of threads, barriers, and what strict mode must refuse.
#include <metal_stdlib>
using namespace metal;

// 16 words a thread, at its place in the grid; cells must be written once.
kernel void positions(device uint* out [[buffer(0)]], uint3 p [[thread_position_in_grid]],
                      uint3 tg [[threadgroup_position_in_grid]],
                      uint3 t [[thread_position_in_threadgroup]],
                      uint index [[thread_index_in_threadgroup]],
                      ushort lane [[thread_index_in_simdgroup]],
                      ushort sg [[simdgroup_index_in_threadgroup]],
                      uint3 size [[threads_per_threadgroup]],
                      uint3 full [[dispatch_threads_per_threadgroup]],
                      uint3 groups [[threadgroups_per_grid]], uint3 grid [[threads_per_grid]],
                      uint width [[threads_per_simdgroup]],
                      uint sgs [[simdgroups_per_threadgroup]],
                      uint all_sgs [[dispatch_simdgroups_per_threadgroup]],
                      uint quad [[quadgroup_index_in_threadgroup]],
                      uint in_quad [[thread_index_in_quadgroup]]) {
  device uint* o = out + 16 * ((p.z * grid.y + p.y) * grid.x + p.x);
  bool good = tg.x * full.x + t.x == p.x && tg.y * full.y + t.y == p.y && tg.z * full.z + t.z == p.z;
  good = good && index == (t.z * size.y + t.y) * size.x + t.x;
  good = good && sg * 32 + lane == index && width == 32;
  good = good && size.x == min(full.x, grid.x - tg.x * full.x);
  good = good && groups.x == (grid.x + full.x - 1) / full.x && groups.z == (grid.z + full.z - 1) / full.z;
  good = good && sgs == (size.x * size.y * size.z + 31) / 32;
  good = good && all_sgs == (full.x * full.y * full.z + 31) / 32;
  good = good && quad * 4 + in_quad == index;
  o[0] += 1;
  o[1] = good;
}

// A sum over the threadgroup by halving, with a barrier a step.
kernel void group_sum(device uint* out [[buffer(0)]], threadgroup uint* s [[threadgroup(0)]],
                      uint i [[thread_index_in_threadgroup]],
                      uint n [[threads_per_threadgroup]],
                      uint tg [[threadgroup_position_in_grid]]) {
  s[i] = i + 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = 512; step > 0; step /= 2) {
    const uint other = i + step < n && i < step ? s[i + step] : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    s[i] += other;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i == 0) out[tg] = s[0];
}

kernel void divergent_collective(device uint* o [[buffer(0)]], uint i [[thread_index_in_simdgroup]]) {
  uint x = i;
  if (i < 16) x = simd_sum(x);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = x;
}

kernel void two_collectives(device uint* o [[buffer(0)]], uint i [[thread_index_in_simdgroup]]) {
  uint x = i;
  if (i < 16)
    x = simd_sum(x);
  else
    x = simd_max(x);
  o[i] = x;
}

kernel void two_barriers(device uint* o [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  if (i < 32)
    threadgroup_barrier(mem_flags::mem_threadgroup);
  else
    threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = i;
}

kernel void early_exit(device uint* o [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  if (i >= 40) return;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = i;
}

kernel void inactive_lane(device uint* o [[buffer(0)]], uint i [[thread_index_in_simdgroup]]) {
  if (i >= 16) return;
  o[i] = simd_shuffle(i, ushort(20));
}

kernel void partial_matrix(device float* o [[buffer(0)]]) {
  simdgroup_float8x8 a(1.0f), b(1.0f), c(0.0f);
  simdgroup_multiply_accumulate(c, a, b, c);
  simdgroup_store(c, o, 8);
}

[[kernel, max_total_threads_per_threadgroup(64)]] void at_most_64(device uint* o [[buffer(0)]]) {
  o[0] = 1;
}

kernel void group_memory_in_variables(device uint* o [[buffer(0)]],
                                      uint i [[thread_index_in_threadgroup]]) {
  threadgroup uint a[4096], b[4096];
  threadgroup uint c[4];
  a[i] = b[i] = c[i % 4] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = a[i] + b[i] + c[0];
}

kernel void deep_recursion_of_frames(device uint* o [[buffer(0)]], constant uint& n [[buffer(1)]]) {
  uint a[3900];
  for (uint i = 0; i < 3900; i++) a[i] = i * n;
  uint sum = 0;
  for (uint i = 0; i < 3900; i++) sum += a[(i * 7) % 3900];
  o[0] = sum;
}
