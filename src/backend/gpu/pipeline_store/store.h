// The pipeline store: from a kernel's description to a checked, self-tested pipeline, through the
// tiers in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cache/cache.h"
#include "backend/gpu/pipeline_store/compiler.h"
#include "backend/gpu/pipeline_store/device_description.h"
#include "backend/gpu/pipeline_store/embedded.h"
#include "backend/gpu/pipeline_store/kernel.h"
#include "backend/gpu/pipeline_store/known_bad.h"
#include "backend/gpu/pipeline_store/loader.h"
#include "backend/gpu/pipeline_store/report.h"
#include "backend/gpu/pipeline_store/switches.h"
#include "base/error.h"

namespace tern::gpu {

struct StoreOptions {
  Switches switches;
  std::string tern;                     // version and source revision of this build
  std::shared_ptr<cache::Cache> cache;  // empty: no disk tier
  std::size_t threads = 2;              // compiling at once
  std::int64_t notice_after_ms = 1000;
  std::span<const KnownBad> known_bad = known_bad_kernels();
  cache::MessageFn warn;   // sentences at warning level; may be empty
  CompileNoticeFn notice;  // may be empty
};

// A pipeline with all its entry points, ready to launch. Shared and immutable.
struct Pipeline {
  std::shared_ptr<Module> module;
  std::vector<LoadedEntry> entries;  // in the order of KernelDescription::entry_points
  PipelineReport report;
};
using PipelinePtr = std::shared_ptr<const Pipeline>;

// One per device object; nothing is shared between stores but the folder on disk.
// Threads: any may call any member. Compilers run on up to `threads` threads of their own; loader
// and self-tests run on the calling thread, one at a time.
class Store {
 public:
  Store(DeviceDescription device, std::shared_ptr<Loader> loader, EmbeddedTable embedded,
        std::vector<std::shared_ptr<Compiler>> compilers, StoreOptions options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // One result per kernel; a kernel that fails takes no other down. Errors: kUnsupported names the
  // kernel and each tier's reason; kNumeric when only self-tests failed; kDevice. A failure is
  // remembered: it is neither tried nor told again.
  [[nodiscard]] std::vector<Result<PipelinePtr>> resolve(
      std::span<const KernelDescription> kernels);
  [[nodiscard]] Result<PipelinePtr> resolve(const KernelDescription& kernel);

  // Variants of one kernel, best first. Where a self-test rejects one, the next variant is tried,
  // and then the next tier.
  [[nodiscard]] Result<PipelinePtr> resolve_one_of(std::span<const KernelDescription> variants);

  // Fills the disk tier for `target` without a device: compiled, stored, not loaded. One result
  // per kernel.
  [[nodiscard]] std::vector<Result<void>> build_ahead(std::span<const KernelDescription> kernels,
                                                      const std::string& target);

  // Of every pipeline that was handed out, in order of name.
  [[nodiscard]] std::vector<PipelineReport> reports() const;
  [[nodiscard]] const DeviceDescription& device() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tern::gpu
