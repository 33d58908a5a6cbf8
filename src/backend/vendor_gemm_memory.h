// Device allocations as the vendor bridge knows them: a number that is never given out twice, and
// a size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tern::backend {

// A number given to an allocation at birth and never again in this process. 0 is none.
using AllocationId = std::uint64_t;

// The next number, from any thread. The counter behind it is one of the process's two globals.
[[nodiscard]] AllocationId next_allocation_id();

// Memory of one device, or a part of it that lives and dies on its own. A device derives its own
// class, whose destructor frees the memory; whoever holds a reference keeps it alive. Immutable;
// what lies in the memory is not its affair.
class Allocation {
 public:
  // `device` tells devices apart: any number that the device took from next_allocation_id.
  Allocation(std::uint64_t device, std::uint64_t bytes)
      : id_(next_allocation_id()), device_(device), bytes_(bytes) {}
  virtual ~Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  [[nodiscard]] AllocationId id() const { return id_; }
  [[nodiscard]] std::uint64_t device() const { return device_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  const AllocationId id_;
  const std::uint64_t device_;
  const std::uint64_t bytes_;
};
using AllocationRef = std::shared_ptr<const Allocation>;

// Memory that the host can read and write: all of a CPU's, and that of fake devices.
class HostAllocation final : public Allocation {
 public:
  // `data` stays valid while `owner` lives; without an owner, as long as the caller sees to it.
  HostAllocation(std::uint64_t device, std::byte* data, std::uint64_t bytes,
                 std::shared_ptr<const void> owner = nullptr)
      : Allocation(device, bytes), data_(data), owner_(std::move(owner)) {}

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* const data_;
  const std::shared_ptr<const void> owner_;
};

}  // namespace tern::backend
