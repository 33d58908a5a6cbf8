// A Metal device as the rest of the backend sees it: memory with names and numbers, and the memory
// of whether the device was lost.
#pragma once

#import <Metal/Metal.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "backend/metal/device/objc.h"
#include "backend/metal/metal_backend.h"
#include "backend/vendor_gemm_memory.h"
#include "base/error.h"

namespace tern::metal {

// Allocation::id() hides the type `id` in classes that derive from it.
using BufferObject = id<MTLBuffer>;

// Memory that host and device share. Freed with the last reference.
class MetalMemory final : public backend::Allocation {
 public:
  MetalMemory(std::uint64_t device, Owned<BufferObject> buffer, std::uint64_t bytes)
      : Allocation(device, bytes), buffer_(std::move(buffer)) {}
  [[nodiscard]] BufferObject buffer() const { return buffer_.get(); }
  [[nodiscard]] std::byte* contents() const {
    return static_cast<std::byte*>([buffer_.get() contents]);
  }

 private:
  const Owned<BufferObject> buffer_;
};
using MemoryRef = std::shared_ptr<const MetalMemory>;

// Any thread. Every call makes its own autorelease pool.
class Context {
 public:
  // The system's device. Errors: kDevice: there is none, it is the emulator and that is not
  // allowed, or it gives no queue.
  [[nodiscard]] static Result<std::shared_ptr<Context>> open(const DeviceOptions& options);
  Context(Owned<id<MTLDevice>> device, Owned<id<MTLCommandQueue>> queue);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] id<MTLDevice> device() const { return device_.get(); }
  [[nodiscard]] id<MTLCommandQueue> queue() const { return queue_.get(); }
  // A number that no other device object of this process ever has.
  [[nodiscard]] std::uint64_t id_number() const { return id_; }
  [[nodiscard]] DeviceInfo describe() const;

  // Once the device is lost: the reason.
  [[nodiscard]] Result<void> check_present() const;
  void mark_lost(std::string reason);

  // bytes > 0; `what` names it in messages. Its bytes are garbage. Errors: kOutOfMemory with need
  // and have; kUnsupported for more than one buffer of this device can hold.
  [[nodiscard]] Result<MemoryRef> allocate(std::uint64_t bytes, std::string_view what) const;

 private:
  const Owned<id<MTLDevice>> device_;
  const Owned<id<MTLCommandQueue>> queue_;
  const std::uint64_t id_;
  mutable std::mutex mutex_;
  std::string lost_;  // why; empty: the device works
};

}  // namespace tern::metal
