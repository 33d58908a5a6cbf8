// argmax: the lowest index of the largest value of a row, in parts that one block merges.
#include "backend/cuda/kernels/device.cuh"
#include "backend/gpu/params/rowwise.h"

TERN_EXPORT_LAYOUT(argmax_parts, TernArgmaxParams, TERN_ARGMAX_LAYOUT)
TERN_EXPORT_LAYOUT(argmax_merge, TernArgmaxParams, TERN_ARGMAX_LAYOUT)

namespace tern {
namespace cuda {

__device__ __forceinline__ TernArgmax better(const TernArgmax& a, const TernArgmax& b) {
  const bool take_b = b.index >= 0 && (a.index < 0 || b.value > a.value ||
                                       (b.value == a.value && b.index < a.index));
  TernArgmax best = take_b ? b : a;
  best.flags = a.flags | b.flags;
  return best;
}

// The best of a block of 256 threads, in thread 0.
__device__ __forceinline__ TernArgmax best_of_block(TernArgmax mine) {
  __shared__ TernArgmax warps[8];
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) {
    TernArgmax other;
    other.value = __shfl_xor_sync(0xFFFFFFFFU, mine.value, step);
    other.flags = __shfl_xor_sync(0xFFFFFFFFU, mine.flags, step);
    other.index = __shfl_xor_sync(0xFFFFFFFFU, mine.index, step);
    mine = better(mine, other);
  }
  if (lane_id() == 0U) warps[threadIdx.x >> 5] = mine;
  __syncthreads();
  if (threadIdx.x == 0U)
    for (int w = 1; w < 8; ++w) mine = better(mine, warps[w]);
  return mine;
}

}  // namespace cuda
}  // namespace tern

// grid (parts, rows), 256 threads. NaN is flagged and never chosen.
extern "C" __global__ void __launch_bounds__(256)
    argmax_parts(const tern_u8*, tern_u8* arena, const tern_u8* block, const TernArgmaxParams p) {
  using namespace tern::cuda;
  launch_dependents();
  dependency_wait();
  const tern_u32 row = blockIdx.y;
  if (!has_row(block, p.axis, row)) return;
  const float* x = float_row(static_cast<const tern_u8*>(arena), p.x, p.x_row_stride, row);
  const tern_u64 begin = p.width * blockIdx.x / p.part_count;
  const tern_u64 end = p.width * (blockIdx.x + 1U) / p.part_count;
  TernArgmax mine = {__uint_as_float(0xFF800000U), 0U, -1};
  for (tern_u64 k = begin + threadIdx.x; k < end; k += 256U) {
    const float value = x[k];
    if (value != value) {
      mine.flags |= kTernArgmaxNan;
      continue;
    }
    if ((__float_as_uint(value) & 0x7FFFFFFFU) < 0x7F800000U) mine.flags |= kTernArgmaxFinite;
    if (mine.index < 0 || value > mine.value) {
      mine.value = value;
      mine.index = static_cast<tern_i64>(k);
    }
  }
  mine = best_of_block(mine);
  if (threadIdx.x == 0U)
    reinterpret_cast<TernArgmax*>(
        arena + p.parts)[static_cast<tern_u64>(row) * p.part_count + blockIdx.x] = mine;
}

// grid (1, rows), 256 threads.
extern "C" __global__ void __launch_bounds__(256)
    argmax_merge(const tern_u8*, tern_u8* arena, const tern_u8* block, const TernArgmaxParams p) {
  using namespace tern::cuda;
  launch_dependents();
  dependency_wait();
  const tern_u32 row = blockIdx.y;
  if (!has_row(block, p.axis, row)) return;
  const TernArgmax* parts = reinterpret_cast<const TernArgmax*>(arena + p.parts) +
                            static_cast<tern_u64>(row) * p.part_count;
  TernArgmax mine = {__uint_as_float(0xFF800000U), 0U, -1};
  for (tern_u32 i = threadIdx.x; i < p.part_count; i += 256U) mine = better(mine, parts[i]);
  mine = best_of_block(mine);
  if (threadIdx.x == 0U) reinterpret_cast<TernArgmax*>(arena + p.result)[row] = mine;
}
