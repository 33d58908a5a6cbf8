// read_bytes: reads bytes and adds them up: how fast this device reads its memory.
#include "backend/cuda/kernels/device.cuh"
#include "backend/gpu/params/rowwise.h"

TERN_EXPORT_LAYOUT(read_bytes, TernReadParams, TERN_READ_LAYOUT)

// grid (blocks, 1), 512 threads; every block reads an even share. The sum is written only where it
// hits one value of four billion, so that no read can be left out.
extern "C" __global__ void __launch_bounds__(512, 2)
    read_bytes(const tern_u8* weights, tern_u8* arena, const tern_u8*, const TernReadParams p) {
  using namespace tern::cuda;
  const tern_u8* data = weights + p.data;
  const tern_u64 begin = p.vectors * blockIdx.x / gridDim.x;
  const tern_u64 end = p.vectors * (blockIdx.x + 1U) / gridDim.x;
  tern_u32 sum = 0;
  tern_u64 i = begin + threadIdx.x;
  for (; i + 7U * 512U < end; i += 8U * 512U) {
    uint4 v[8];
#pragma unroll
    for (tern_u32 j = 0; j < 8U; ++j) v[j] = load_stream(data + (i + j * 512U) * 16U);
#pragma unroll
    for (tern_u32 j = 0; j < 8U; ++j) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  uint4 v[8];
#pragma unroll
  for (tern_u32 j = 0; j < 8U; ++j) {
    v[j] = make_uint4(0, 0, 0, 0);
    if (i + j * 512U < end) v[j] = load_stream(data + (i + j * 512U) * 16U);
  }
#pragma unroll
  for (tern_u32 j = 0; j < 8U; ++j) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  if (sum == 0x9E3779B9U) atomicAdd(reinterpret_cast<tern_u32*>(arena + p.sink), 1U);
}
