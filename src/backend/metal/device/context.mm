#include "backend/metal/device/context.h"

#include <algorithm>

namespace tern::metal {
namespace {

constexpr std::string_view kEmulatorName = "Software Metal (test only)";

int newest_family(id<MTLDevice> device) {
  constexpr MTLGPUFamily kFamilies[] = {MTLGPUFamilyApple10, MTLGPUFamilyApple9, MTLGPUFamilyApple8,
                                        MTLGPUFamilyApple7, MTLGPUFamilyApple6};
  int number = 10;
  for (const MTLGPUFamily family : kFamilies) {
    if ([device supportsFamily:family]) return number;
    --number;
  }
  return 0;
}

}  // namespace

Context::Context(Owned<id<MTLDevice>> device, Owned<id<MTLCommandQueue>> queue)
    : device_(std::move(device)), queue_(std::move(queue)), id_(backend::next_allocation_id()) {}

Result<std::shared_ptr<Context>> Context::open(const DeviceOptions& options) {
  @autoreleasepool {
    Owned<id<MTLDevice>> device(MTLCreateSystemDefaultDevice());
    if (!device)
      return fail(ErrorCode::kDevice,
                  "[metal] this system shows no Metal device to this process; run it with "
                  "--device cpu");
    const std::string name = text_of([device.get() name]);
    if (name == kEmulatorName && !options.allows_emulator)
      return fail(ErrorCode::kDevice, "[metal] the device is '{}', which only tests may use", name);
    Owned<id<MTLCommandQueue>> queue([device.get() newCommandQueue]);
    if (!queue)
      return fail(ErrorCode::kDevice, "[metal] {} gives this process no command queue", name);
    [queue.get() setLabel:@"tern steps"];
    return std::make_shared<Context>(std::move(device), std::move(queue));
  }
}

DeviceInfo Context::describe() const {
  @autoreleasepool {
    id<MTLDevice> device = device_.get();
    DeviceInfo info;
    info.product = text_of([device name]);
    info.has_unified_memory = [device hasUnifiedMemory];
    info.max_buffer_bytes = [device maxBufferLength];
    info.profile.name = "metal0";
    info.profile.kind = backend::DeviceKind::kMetal;
    const int family = newest_family(device);
    info.profile.architecture = family > 0 ? fmt::format("apple{}", family) : "unknown";
    info.profile.memory_bytes = [device recommendedMaxWorkingSetSize];
    return info;
  }
}

Result<void> Context::check_present() const {
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) return {};
  return fail(ErrorCode::kDevice, "[metal] the device was lost: {}; open the engine again", lost_);
}

void Context::mark_lost(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) lost_ = std::move(reason);
}

Result<MemoryRef> Context::allocate(std::uint64_t bytes, std::string_view what) const {
  TERN_TRY(check_present());
  @autoreleasepool {
    id<MTLDevice> device = device_.get();
    const std::uint64_t most = [device maxBufferLength];
    if (bytes > most)
      return fail(ErrorCode::kUnsupported,
                  "[metal] {} needs {} bytes in one buffer, this device allows {}", what, bytes,
                  most);
    Owned<id<MTLBuffer>> buffer([device newBufferWithLength:bytes
                                                    options:MTLResourceStorageModeShared]);
    if (!buffer) {
      const std::uint64_t all = [device recommendedMaxWorkingSetSize];
      const std::uint64_t used = std::min<std::uint64_t>([device currentAllocatedSize], all);
      return fail(ErrorCode::kOutOfMemory,
                  "[metal] {} needs {} bytes on the device, which has {} of {} bytes free", what,
                  bytes, all - used, all);
    }
    [buffer.get() setLabel:ns_string(what)];
    return MemoryRef(std::make_shared<MetalMemory>(id_, std::move(buffer), bytes));
  }
}

}  // namespace tern::metal
