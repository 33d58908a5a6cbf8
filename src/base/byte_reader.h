// A bounds-checked, little-endian reader over bytes in memory: the only way in which parsers move.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace tern {

// Every call checks what it needs against the bytes that remain before it moves; after an error the
// position is unchanged. Errors are kInvalidFile and name the offset, the need and the size. Views
// point into the given bytes.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] std::uint64_t remaining() const { return bytes_.size() - position_; }

  // The next n bytes.
  Result<std::span<const std::byte>> take(std::uint64_t n) {
    if (n > remaining()) return too_short(n);
    const auto result =
        bytes_.subspan(static_cast<std::size_t>(position_), static_cast<std::size_t>(n));
    position_ += n;
    return result;
  }
  Result<void> skip(std::uint64_t n) {
    if (n > remaining()) return too_short(n);
    position_ += n;
    return {};
  }
  // Moves to an absolute offset, at most size().
  Result<void> seek(std::uint64_t offset) {
    if (offset > size()) {
      return fail(ErrorCode::kInvalidFile, "offset {} lies beyond the end, at {}", offset, size());
    }
    position_ = offset;
    return {};
  }
  // n, if n elements of at least min_size bytes each (min_size >= 1) can still follow: the check
  // before any loop or allocation over a count from the file.
  Result<std::uint64_t> count(std::uint64_t n, std::uint64_t min_size) const {
    TERN_ASSERT(min_size > 0);
    if (n > remaining() / min_size) {
      return fail(
          ErrorCode::kInvalidFile,
          "count {} at offset {} does not fit: {} bytes remain and each element takes at least {}",
          n, position_, remaining(), min_size);
    }
    return n;
  }
  // A u64 length and that many bytes (GGUF's string), at most max_bytes long. Not checked for
  // UTF-8.
  Result<std::string_view> string(std::uint64_t max_bytes = ~std::uint64_t{0}) {
    const std::uint64_t start = position_;
    const auto length = u64();
    if (!length.ok()) return length.error();
    if (*length > remaining()) {
      const Error error = fail(ErrorCode::kInvalidFile,
                               "a string of {} bytes at offset {} goes beyond the end, at {}",
                               *length, start, size());
      position_ = start;
      return error;
    }
    if (*length > max_bytes) {
      position_ = start;
      return fail(ErrorCode::kInvalidFile, "a string of {} bytes at offset {} is longer than {}",
                  *length, start, max_bytes);
    }
    const char* text = reinterpret_cast<const char*>(bytes_.data()) + position_;
    position_ += *length;
    return std::string_view(text, static_cast<std::size_t>(*length));
  }

  Result<std::uint8_t> u8() { return number<std::uint8_t>(); }
  Result<std::uint16_t> u16() { return number<std::uint16_t>(); }
  Result<std::uint32_t> u32() { return number<std::uint32_t>(); }
  Result<std::uint64_t> u64() { return number<std::uint64_t>(); }
  Result<std::int8_t> i8() { return number<std::int8_t>(); }
  Result<std::int16_t> i16() { return number<std::int16_t>(); }
  Result<std::int32_t> i32() { return number<std::int32_t>(); }
  Result<std::int64_t> i64() { return number<std::int64_t>(); }
  Result<float> f32() { return number<float>(); }
  Result<double> f64() { return number<double>(); }

 private:
  static_assert(std::endian::native == std::endian::little, "the files are little-endian");

  template <class T>
  Result<T> number() {
    if (sizeof(T) > remaining()) return too_short(sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }
  [[nodiscard]] Error too_short(std::uint64_t needed) const {
    return fail(ErrorCode::kInvalidFile, "{} bytes are needed at offset {}, but it ends at {}",
                needed, position_, size());
  }

  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
};

}  // namespace tern
