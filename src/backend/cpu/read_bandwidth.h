// The read bandwidth of memory as the threads of a pool see it: the ceiling of a decode step.
#pragma once

#include "base/thread_pool.h"

namespace tern::cpu {

// GB/s (1e9 bytes per second): the fastest of several ways of reading a buffer larger than the
// caches, each the median of its passes; 0 when there is no memory for it. Takes about half a
// second.
[[nodiscard]] double measure_read_gbps(ThreadPool& pool);

}  // namespace tern::cpu
