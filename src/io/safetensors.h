// One safetensors file: a strict reader, and a writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "quant/format.h"

namespace tern {
class FileMap;
}

namespace tern::io {

enum class SafetensorsType : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kU16,
  kI16,
  kF16,
  kBf16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
};
// "F32", as in the file
[[nodiscard]] std::string_view safetensors_type_name(SafetensorsType type);
[[nodiscard]] std::uint64_t safetensors_type_bytes(SafetensorsType type);

struct SafetensorsTensor {
  std::string name;
  SafetensorsType type = SafetensorsType::kF32;
  std::vector<std::int64_t>
      shape;  // row-major, outermost first; empty for a scalar; dimensions may be 0
  std::span<const std::byte> bytes;  // exactly the elements; may be unaligned
  std::uint64_t file_offset = 0;

  [[nodiscard]] std::int64_t elements() const;
  // F32, F16 and BF16 are weight formats, other types are not.
  [[nodiscard]] std::optional<quant::Format> format() const;
  // "[2, 64]"
  [[nodiscard]] std::string shape_text() const;
  // The elements as T; the type must be of that size.
  template <class T>
  [[nodiscard]] std::vector<T> values() const {
    TERN_ASSERT(sizeof(T) == safetensors_type_bytes(type));
    std::vector<T> result(bytes.size() / sizeof(T));
    if (!result.empty()) copy_bytes(result.data(), bytes);
    return result;
  }

 private:
  static void copy_bytes(void* to, std::span<const std::byte> from);
};

// Messages carry no path. The ranges of the tensors cover the data: no holes, no overlaps, nothing
// behind.
class SafetensorsFile {
 public:
  // Reads from memory, which must outlive the result.
  [[nodiscard]] static Result<SafetensorsFile> read(std::span<const std::byte> file);
  // Reads from a mapped file and keeps it mapped.
  [[nodiscard]] static Result<SafetensorsFile> open(std::shared_ptr<const FileMap> file);

  // In the order of the header.
  [[nodiscard]] std::span<const SafetensorsTensor> tensors() const { return tensors_; }
  // nullptr when there is none.
  [[nodiscard]] const SafetensorsTensor* find(std::string_view name) const;
  // The strings of __metadata__.
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& metadata() const {
    return metadata_;
  }

 private:
  SafetensorsFile() = default;

  std::shared_ptr<const FileMap> map_;  // null when read from memory
  std::vector<SafetensorsTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

class SafetensorsWriter {
 public:
  void set_metadata(std::string_view key, std::string_view value);
  // The bytes must stay valid until the file is written; there are as many as shape and type say,
  // names are unique and valid UTF-8.
  void add(std::string_view name, SafetensorsType type, std::span<const std::int64_t> shape,
           std::span<const std::byte> bytes);
  void add_f32(std::string_view name, std::span<const std::int64_t> shape,
               std::span<const float> values);
  void add_i32(std::string_view name, std::span<const std::int64_t> shape,
               std::span<const std::int32_t> values);

  [[nodiscard]] std::vector<std::byte> to_bytes() const;
  // Under its name only when it is complete.
  [[nodiscard]] Result<void> write(const std::filesystem::path& path, bool overwrite = false) const;

 private:
  [[nodiscard]] std::string header() const;  // with its length before it and spaces behind it

  std::vector<SafetensorsTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace tern::io
