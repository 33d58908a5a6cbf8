// The read bandwidth of memory as the threads of a pool see it: the ceiling of a decode step.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "tern/cancel.h"

namespace tern::cpu {

// GB/s (1e9 bytes per second): the fastest of several ways of reading a buffer larger than the
// caches, each the median of its passes; 0 when there is no memory for it. Takes about half a
// second.
[[nodiscard]] double measure_read_gbps(ThreadPool& pool);

// About the same in a quarter of a second and 256 MiB, which a large cache may hold a part of: the
// fastest pass. 0 when there is no memory for it. Throws Error(kCancelled).
[[nodiscard]] double estimate_read_gbps(ThreadPool& pool, const CancelToken& cancel);
// Of the last level of cache; 0: not known.
[[nodiscard]] std::uint64_t last_cache_bytes();
inline constexpr std::uint64_t kEstimateBytes = std::uint64_t{256} << 20U;

}  // namespace tern::cpu
