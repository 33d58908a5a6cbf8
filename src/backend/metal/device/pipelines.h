// The kernels of one device as checked pipelines, made before the first step that needs them.
#pragma once

#import <Metal/Metal.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/metal/device/context.h"
#include "backend/metal/kernels/kernels.h"

namespace tern::metal {

// Where the code of a library came from.
enum class LibraryTier { kEmbedded, kFile, kSource };

// Thread safety: any thread.
class Pipelines {
 public:
  // library_path: a library file instead of what the program holds; empty: none.
  Pipelines(std::shared_ptr<Context> context, std::string library_path)
      : context_(std::move(context)), library_path_(std::move(library_path)) {}

  // The kernel's pipeline, checked: it is there, its parameter block is the host's, and its limits
  // hold. It lives as long as this object. Errors: kUnsupported, naming the kernel and why;
  // kDevice. A failure that is the kernel's own is remembered.
  [[nodiscard]] Result<id<MTLComputePipelineState>> pipeline(KernelId kernel_id);

  [[nodiscard]] int libraries_loaded() const;
  // What a user should know: compiler texts, slower tiers.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  using PipelineState = Owned<id<MTLComputePipelineState>>;
  using Library = Owned<id<MTLLibrary>>;
  [[nodiscard]] Result<PipelineState> make(const KernelInfo& kernel);
  [[nodiscard]] Result<id<MTLLibrary>> library_for(const KernelInfo& kernel);
  [[nodiscard]] Result<Library> load_prebuilt();
  [[nodiscard]] Result<Library> compile(const KernelInfo& kernel);
  [[nodiscard]] Result<PipelineState> make_state(id<MTLLibrary> library, std::string_view entry);
  [[nodiscard]] Result<void> check_limits(id<MTLComputePipelineState> state,
                                          const KernelInfo& kernel) const;
  [[nodiscard]] Result<void> check_params(id<MTLLibrary> library, const KernelInfo& kernel);

  const std::shared_ptr<Context> context_;
  const std::string library_path_;
  mutable std::mutex mutex_;
  bool has_tried_prebuilt_ = false;
  Library prebuilt_;                                      // all kernels
  std::map<std::string, Library, std::less<>> compiled_;  // by source, where there is no other
  std::map<KernelId, PipelineState> states_;
  std::map<KernelId, Error> failures_;
  int libraries_loaded_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace tern::metal
