// Owned, aligned, zeroed memory; a failure to get it is an error with numbers, never an exception
// of the allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

namespace tern {

// Move-only. From kMapThreshold on the memory is mapped on its own, so that it is zero without
// being touched, is touched first by the thread that uses it first, and returns to the system as
// soon as it is freed.
class AlignedBuffer {
 public:
  static constexpr std::size_t kMapThreshold = std::size_t{1} << 20;
  static constexpr std::size_t kDefaultAlignment = 64;

  struct Options {
    std::size_t alignment = kDefaultAlignment;  // a power of two, at most 2 MiB
    bool huge_pages =
        false;  // ask for 2 MiB pages where the system has them (then aligned to 2 MiB)
    std::string_view what = "a buffer";  // for the message: "the KV cache"
  };

  // Zeroed memory; 0 bytes give an empty buffer. kOutOfMemory names what it was for and how much it
  // needed.
  [[nodiscard]] static Result<AlignedBuffer> allocate(std::uint64_t bytes, Options options);
  [[nodiscard]] static Result<AlignedBuffer> allocate(std::uint64_t bytes) {
    return allocate(bytes, Options{});
  }

  AlignedBuffer() = default;
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::span<std::byte> bytes() { return {data_, size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  // The memory as elements of T, as many whole ones as fit. T is trivially copyable and at most as
  // aligned as the buffer.
  template <class T>
  [[nodiscard]] std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  void release() noexcept;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_size_ = 0;  // 0: from the heap
};

}  // namespace tern
