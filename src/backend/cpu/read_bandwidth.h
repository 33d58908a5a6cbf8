// The read bandwidth of memory as the threads of a pool see it: the ceiling of a decode step.
#pragma once

#include "base/thread_pool.h"

namespace tern::cpu {

// GB/s (1e9 bytes per second), the median of several passes over buffers larger than the caches; 0
// when there is no memory for them. Takes about half a second.
[[nodiscard]] double measure_read_gbps(ThreadPool& pool);

}  // namespace tern::cpu
