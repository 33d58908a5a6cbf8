// Collectives of a SIMD-group: each row of 32 results is one function.
#include <metal_stdlib>
using namespace metal;

kernel void simd_functions(device const int* in [[buffer(0)]], device int* out [[buffer(1)]],
                           uint i [[thread_index_in_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]]) {
  const int x = in[i];
  uint row = 0;
#define ROW(expression) out[row++ * 32 + i] = int(expression);
  ROW(simd_sum(x))
  ROW(simd_product(x % 3 + 1))
  ROW(simd_max(x))
  ROW(simd_min(x))
  ROW(simd_and(x | 8))
  ROW(simd_or(x))
  ROW(simd_xor(x))
  ROW(simd_prefix_inclusive_sum(x))
  ROW(simd_prefix_exclusive_sum(x))
  ROW(simd_prefix_inclusive_product(1 + int(lane % 2)))
  ROW(simd_prefix_exclusive_product(1 + int(lane % 2)))
  ROW(simd_broadcast(x, ushort(5)))
  ROW(simd_broadcast_first(x))
  ROW(simd_any(x == in[3]))
  ROW(simd_all(x >= 0))
  ROW(ulong(simd_ballot(x % 2 == 1)))
  ROW(ulong(simd_active_threads_mask()))
  ROW(simd_is_first())
  ROW(simd_sum(float4(float(x), 1, 2, 3)).y)
#undef ROW
}

// These read other lanes, so all 32 must be there.
kernel void simd_shuffles(device const int* in [[buffer(0)]], device int* out [[buffer(1)]],
                          uint i [[thread_index_in_threadgroup]]) {
  const int x = in[i];
  uint row = 0;
#define ROW(expression) out[row++ * 32 + i] = int(expression);
  ROW(simd_shuffle(x, ushort(31 - i)))
  ROW(simd_shuffle_xor(x, ushort(5)))
  ROW(simd_shuffle_down(x, ushort(3)))
  ROW(simd_shuffle_up(x, ushort(3)))
  ROW(simd_shuffle_rotate_down(x, ushort(3)))
  ROW(simd_shuffle_rotate_up(x, ushort(3)))
  ROW(simd_shuffle_and_fill_down(x, -x, ushort(3)))
  ROW(simd_shuffle_and_fill_up(x, -x, ushort(3)))
  ROW(simd_shuffle(float2(float(x), float(-x)), ushort(31 - i)).y)
#undef ROW
}

// c = a * b + c, 8x8, c in float; then the transposed product, and where the elements lie.
template <typename T>
kernel void matrices(device const T* a [[buffer(0)]], device const T* b [[buffer(1)]],
                     device float* out [[buffer(2)]], uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_matrix<T, 8, 8> x, y;
  simdgroup_matrix<float, 8, 8> c = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
  simdgroup_load(x, a, 10);
  simdgroup_load(y, b, 10, ulong2(1, 2));
  simdgroup_multiply_accumulate(c, x, y, c);
  simdgroup_store(c, out, 8);
  simdgroup_load(x, a, 10, ulong2(0, 0), true);
  simdgroup_multiply(c, x, y);
  simdgroup_store(c, out + 64, 8, ulong2(0, 0), true);
  simdgroup_matrix<float, 8, 8> diagonal(3.0f);
  simdgroup_store(diagonal, out + 128, 8);
  c.thread_elements()[0] = float(2 * lane);
  c.thread_elements()[1] = float(2 * lane + 1);
  simdgroup_store(c, out + 192, 8);
}
template [[host_name("matrices_float")]] kernel void matrices<float>(
    device const float*, device const float*, device float*, uint);
template [[host_name("matrices_half")]] kernel void matrices<half>(
    device const half*, device const half*, device float*, uint);
template [[host_name("matrices_bfloat")]] kernel void matrices<bfloat>(
    device const bfloat*, device const bfloat*, device float*, uint);

// Each thread does each operation once on a cell of its own kind.
kernel void atomics(device atomic_uint* o [[buffer(0)]], device atomic_int* s [[buffer(1)]],
                    device atomic_float* f [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  threadgroup atomic_uint shared;
  if (i % 64 == 0) atomic_store_explicit(&shared, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&shared, 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i % 64 == 0)
    atomic_fetch_add_explicit(&o[0], atomic_load_explicit(&shared, memory_order_relaxed),
                              memory_order_relaxed);
  atomic_fetch_sub_explicit(&o[1], 1u, memory_order_relaxed);
  atomic_fetch_max_explicit(&o[2], i, memory_order_relaxed);
  atomic_fetch_min_explicit(&o[3], i + 7, memory_order_relaxed);
  atomic_fetch_or_explicit(&o[4], 1u << (i % 20), memory_order_relaxed);
  atomic_fetch_and_explicit(&o[5], ~(1u << (i % 20)), memory_order_relaxed);
  atomic_fetch_xor_explicit(&o[6], i, memory_order_relaxed);
  atomic_fetch_min_explicit(&s[0], -int(i), memory_order_relaxed);
  atomic_fetch_add_explicit(&f[0], 0.5f, memory_order_relaxed);
  if (atomic_exchange_explicit(&o[7], 1u, memory_order_relaxed) == 0u)
    atomic_fetch_add_explicit(&o[8], 1u, memory_order_relaxed);
  uint expected = atomic_load_explicit(&o[9], memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&o[9], &expected, expected + 2,
                                                memory_order_relaxed, memory_order_relaxed)) {
  }
}
