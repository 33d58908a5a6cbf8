#include "backend/cuda/core/context.h"

#include <utility>

namespace tern::cuda {

DeviceMemory::DeviceMemory(std::shared_ptr<Context> context, Address address, std::uint64_t bytes)
    : Allocation(context->id(), bytes), context_(std::move(context)), address_(address) {}

DeviceMemory::~DeviceMemory() {
  // A lost device refuses this, and there is nobody to tell.
  if (context_->make_current().ok()) (void)context_->api().memory_free(address_);
}

PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr && context_->make_current().ok()) (void)context_->api().host_free(data_);
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : context_(std::move(other.context_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<std::shared_ptr<Context>> Context::open(std::shared_ptr<const DriverApi> api, int ordinal) {
  DeviceNumber device = 0;
  TERN_TRY(cuda::check(*api, api->device_get(&device, ordinal), "cuDeviceGet"));
  ContextHandle* handle = nullptr;
  TERN_TRY(cuda::check(*api, api->context_retain(&handle, device), "cuDevicePrimaryCtxRetain"));
  return std::shared_ptr<Context>(new Context(std::move(api), ordinal, device, handle));
}

Context::Context(std::shared_ptr<const DriverApi> api, int ordinal, DeviceNumber device,
                 ContextHandle* handle)
    : api_(std::move(api)),
      id_(backend::next_allocation_id()),
      ordinal_(ordinal),
      device_(device),
      handle_(handle) {}

Context::~Context() { (void)api_->context_release(device_); }

Result<int> Context::attribute(DeviceAttribute attribute) const {
  int value = 0;
  TERN_TRY(check(api_->device_attribute(&value, attribute, device_), "cuDeviceGetAttribute"));
  return value;
}

Result<void> Context::make_current() const {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty())
      return fail(ErrorCode::kDevice, "[cuda] device cuda{} was lost: {}; open the engine again",
                  ordinal_, lost_);
  }
  return check(api_->context_set(handle_), "cuCtxSetCurrent");
}

Result<void> Context::check(Status status, const char* call) const {
  Result<void> result = cuda::check(*api_, status, call);
  if (!result.ok() && is_sticky(status)) {
    const std::lock_guard lock(mutex_);
    if (lost_.empty()) lost_ = result.error().message();
  }
  return result;
}

bool Context::is_lost() const {
  const std::lock_guard lock(mutex_);
  return !lost_.empty();
}

Result<std::shared_ptr<const DeviceMemory>> Context::allocate(std::uint64_t bytes,
                                                              std::string_view what) {
  TERN_TRY(make_current());
  Address address = 0;
  const Status status = api_->memory_allocate(&address, static_cast<std::size_t>(bytes));
  if (status == kOutOfMemoryStatus) {
    std::size_t available = 0;
    std::size_t total = 0;
    (void)api_->memory_info(&available, &total);
    return fail(ErrorCode::kOutOfMemory,
                "[cuda] {}: {} bytes are needed on cuda{}, {} of {} bytes are free", what, bytes,
                ordinal_, available, total);
  }
  TERN_TRY(check(status, "cuMemAlloc"));
  return std::shared_ptr<const DeviceMemory>(
      std::make_shared<DeviceMemory>(shared_from_this(), address, bytes));
}

Result<PinnedMemory> Context::allocate_pinned(std::size_t bytes, std::string_view what) {
  TERN_TRY(make_current());
  void* data = nullptr;
  const Status status = api_->host_allocate(&data, bytes, 0);
  if (status == kOutOfMemoryStatus)
    return fail(
        ErrorCode::kOutOfMemory,
        "[cuda] {}: {} bytes of pinned host memory are needed, the system does not give them", what,
        bytes);
  TERN_TRY(check(status, "cuMemHostAlloc"));
  return PinnedMemory(shared_from_this(), static_cast<std::byte*>(data), bytes);
}

}  // namespace tern::cuda
