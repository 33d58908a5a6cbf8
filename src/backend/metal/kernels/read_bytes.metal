// read_bytes: reads bytes and adds them up: how fast this device reads its memory.
#include "backend/gpu/params/rowwise.h"
#include "backend/metal/kernels/device.h"

TERN_EXPORT_LAYOUT(read_bytes, TernReadParams, TERN_READ_LAYOUT)

// Threadgroups (any number, 1) of 512 threads; each reads an even share. The sum is written only
// where it hits one value of four billion, so that no read can be left out.
kernel void read_bytes(device const uchar* weights [[buffer(0)]],
                       device uchar* arena [[buffer(1)]],
                       constant TernReadParams& p [[buffer(3)]],
                       uint2 place [[threadgroup_position_in_grid]],
                       uint2 count [[threadgroups_per_grid]],
                       uint2 thread_place [[thread_position_in_threadgroup]]) {
  using namespace tern;
  device const uint4* data = reinterpret_cast<device const uint4*>(weights + p.data);
  const tern_u64 begin = p.vectors * place.x / count.x;
  const tern_u64 end = p.vectors * (place.x + 1U) / count.x;
  uint4 sum = uint4(0U);
  for (tern_u64 i = begin + thread_place.x; i < end; i += 512U) sum += data[i];
  if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x9E3779B9U)
    atomic_fetch_add_explicit(reinterpret_cast<device atomic_uint*>(arena + p.sink), 1U,
                              memory_order_relaxed);
}
