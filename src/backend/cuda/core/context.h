// A device's context as the rest of the backend sees it: checked calls, memory with names, and the
// memory of whether the device was lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "backend/cuda/driver/driver_api.h"
#include "backend/vendor_gemm_memory.h"
#include "base/error.h"

namespace tern::cuda {

class Context;

// Memory of a device. Freed with the last reference, also after the device was lost.
class DeviceMemory final : public backend::Allocation {
 public:
  DeviceMemory(std::shared_ptr<Context> context, Address address, std::uint64_t bytes);
  ~DeviceMemory() override;
  [[nodiscard]] Address address() const { return address_; }

 private:
  std::shared_ptr<Context> context_;
  const Address address_;
};

// Host memory that the device copies from and to without the system's help.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(std::shared_ptr<Context> context, std::byte* data, std::size_t bytes)
      : context_(std::move(context)), data_(data), bytes_(bytes) {}
  ~PinnedMemory();
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Context> context_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// The primary context of one device, retained. Any thread; a thread that calls the driver makes it
// current first.
class Context : public std::enable_shared_from_this<Context> {
 public:
  // ordinal: the driver's number of the device. Errors: kDevice.
  [[nodiscard]] static Result<std::shared_ptr<Context>> open(std::shared_ptr<const DriverApi> api,
                                                             int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const DriverApi& api() const { return *api_; }
  // A number that no other device object of this process ever has.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] int ordinal() const { return ordinal_; }
  [[nodiscard]] Result<int> attribute(DeviceAttribute attribute) const;

  // Makes the context current on the calling thread; once the device is lost, the reason.
  [[nodiscard]] Result<void> make_current() const;
  // Error of a driver call; a sticky one marks the device lost from then on.
  [[nodiscard]] Result<void> check(Status status, const char* call) const;
  [[nodiscard]] bool is_lost() const;

  // bytes > 0; `what` names it in messages. Errors: kOutOfMemory with need and have.
  [[nodiscard]] Result<std::shared_ptr<const DeviceMemory>> allocate(std::uint64_t bytes,
                                                                     std::string_view what);
  [[nodiscard]] Result<PinnedMemory> allocate_pinned(std::size_t bytes, std::string_view what);

 private:
  Context(std::shared_ptr<const DriverApi> api, int ordinal, DeviceNumber device,
          ContextHandle* handle);

  const std::shared_ptr<const DriverApi> api_;
  const std::uint64_t id_;
  const int ordinal_;
  const DeviceNumber device_;
  ContextHandle* const handle_;
  mutable std::mutex mutex_;
  mutable std::string lost_;  // why; empty: the device works
};

}  // namespace tern::cuda
