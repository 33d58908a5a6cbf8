// Reads bytes and adds them up: the ceiling that the benchmark compares with.
#include "backend/cuda/kernels/device.cuh"

// Every block reads an even share of `vectors` 16-byte words; the sum is written only if it hits a
// value that it practically never has, so that no read can be left out.
extern "C" __global__ void __launch_bounds__(512, 2)
    read_bytes(const tern_u8* data, tern_u64 vectors, tern_u32* sink) {
  const tern_u64 begin = vectors * blockIdx.x / gridDim.x;
  const tern_u64 end = vectors * (blockIdx.x + 1U) / gridDim.x;
  tern_u32 sum = 0;
  tern_u64 i = begin + threadIdx.x;
  for (; i + 7U * blockDim.x < end; i += 8U * blockDim.x) {
    uint4 v[8];
#pragma unroll
    for (tern_u32 j = 0; j < 8U; ++j)
      v[j] = tern::cuda::load_stream(data + (i + j * blockDim.x) * 16U);
#pragma unroll
    for (tern_u32 j = 0; j < 8U; ++j) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  uint4 v[8];
#pragma unroll
  for (tern_u32 j = 0; j < 8U; ++j) {
    v[j] = make_uint4(0, 0, 0, 0);
    if (i + j * blockDim.x < end) v[j] = tern::cuda::load_stream(data + (i + j * blockDim.x) * 16U);
  }
#pragma unroll
  for (tern_u32 j = 0; j < 8U; ++j) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  if (sum == 0x9E3779B9U) atomicAdd(sink, 1U);
}
extern "C" __global__ void empty() {}
