// The parts of the GPU benchmark about vendor products and the pipeline store.
#pragma once

#include "tests/gpu/gpu_device.h"

namespace tern::gpu_tests {

// The bridge at 4096^3 bf16 against a bare call of the library, interleaved. False: a result
// differs.
[[nodiscard]] bool bench_products(const GpuDevice& device);
// Milliseconds of finding all kernels: embedded, compiled at run time, from disk.
void bench_store(const GpuDevice& device);

}  // namespace tern::gpu_tests
