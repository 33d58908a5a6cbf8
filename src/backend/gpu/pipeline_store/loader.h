// What a device does for the store: turns an artefact into a module and tells the facts of its
// entry points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/gpu/pipeline_store/compiler.h"
#include "backend/gpu/pipeline_store/kernel.h"
#include "base/error.h"

namespace tern::gpu {

// A loaded library or module; the device's own object, unloaded with the last reference.
class Module {
 public:
  virtual ~Module() = default;
};

struct LoadedEntry {
  std::string name;
  void* handle = nullptr;            // CUfunction, MTLComputePipelineState
  std::optional<ParamsMark> params;  // as exported; nothing: not exported
  std::uint32_t most_threads = 0;    // of a group, with the registers it took
  std::uint64_t static_shared = 0;
  std::uint32_t registers = 0;
  std::uint32_t simd_width = 0;  // 0: not known
};

// Errors of both calls: kDevice means that the device failed, which is nobody's fault but the
// device's; anything else is a fault of the artefact (kNotFound: no such entry point). The store
// calls from any thread, one call at a time.
class Loader {
 public:
  virtual ~Loader() = default;
  [[nodiscard]] virtual Result<std::shared_ptr<Module>> load(PayloadKind kind,
                                                             std::span<const std::byte> bytes,
                                                             const std::string& name) = 0;
  [[nodiscard]] virtual Result<LoadedEntry> find(Module& module, const EntryPoint& entry_point,
                                                 const std::vector<Constant>& load_constants) = 0;

  // A store of finished pipelines (Metal's binary archive). The store calls open_archive before
  // the first load, with the verified bytes in a private file that it removes afterwards; an empty
  // path starts a new one. write_archive is called after pipelines were made; false: nothing new.
  [[nodiscard]] virtual bool has_archive() const { return false; }
  [[nodiscard]] virtual Result<void> open_archive(const std::string& /*path*/) { return {}; }
  [[nodiscard]] virtual Result<bool> write_archive(const std::string& /*path*/) { return false; }
};

}  // namespace tern::gpu
