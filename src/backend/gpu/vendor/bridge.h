// The vendor bridge of a GPU: one executable's cached vendor objects, and the rule by which they
// are dropped.
#pragma once

#include <cstddef>
#include <memory>

#include "backend/gpu/vendor/active_threads.h"
#include "backend/gpu/vendor/vendor_api.h"
#include "backend/vendor_gemm.h"

namespace tern::gpu {

// Numbers of what the bridge holds and did since it was made; a snapshot.
struct BridgeCounts {
  std::size_t plans = 0, kernels = 0, views = 0, descriptors = 0;  // cached now
  std::size_t kernels_in_use = 0;                                  // checked out by encodes
  std::size_t encodes = 0;                                         // running now
  std::uint64_t generation = 0;                                    // invalidations so far
};

// Bounds of the caches; least recently used goes first. Tests make them small.
struct BridgeBounds {
  std::size_t plans = 256;
  std::size_t kernels = 512;  // idle ones and those in use
  std::size_t views = 4096;
  std::size_t descriptors = 1024;
  std::size_t probes = 1024;
  // And-ed to every hash: 0 puts all keys of a cache into one bucket, which must change nothing.
  std::uint64_t hash_mask = ~std::uint64_t{0};
};

// backend::VendorGemm over a VendorApi. Encodes overlap. drop_allocation() and reset() invalidate:
// old entries are not handed out any more from the moment they are called, and they return when the
// encodes that started before have ended; encodes that start later do not count, so a stream of
// them cannot starve an invalidation, nor does it hold one up. A thread that is itself active
// (ActiveThreads) does not wait: what it drops dies with the last encode that holds it.
class VendorBridge : public backend::VendorGemm {
 public:
  // Drops the objects that were made on `id`. Called by an allocation's owner before it frees or
  // reuses the memory (KV pages, staging).
  virtual void drop_allocation(AllocationId id) = 0;
  [[nodiscard]] virtual BridgeCounts counts() const = 0;
};

// `api` is shared by the executables of a device (a library handle, capability facts);
// `threads` likewise.
[[nodiscard]] std::unique_ptr<VendorBridge> make_vendor_bridge(
    std::shared_ptr<VendorApi> api, std::shared_ptr<ActiveThreads> threads,
    const BridgeBounds& bounds = {});

}  // namespace tern::gpu
