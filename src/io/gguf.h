// GGUF files of version 2 and 3: every count, range and type is checked before anything of the file
// is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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

// Value types of the container; the numbers stand in the file.
enum class GgufType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
// "u32", "string", "array"
[[nodiscard]] std::string_view gguf_type_name(GgufType type);

// The strings of an array, where they lie in the file: no copy, and only forward.
//   for (std::string_view token : *file.get_strings("tokenizer.ggml.tokens")) ...
class GgufStrings {
 public:
  class Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(const std::byte* at) : at_(at) {}
    std::string_view operator*() const;
    Iterator& operator++();
    Iterator operator++(int);
    bool operator==(const Iterator&) const = default;

   private:
    const std::byte* at_ = nullptr;  // the u64 length of the current string
  };

  GgufStrings() = default;
  // bytes are exactly count strings, which the reader has checked.
  GgufStrings(std::span<const std::byte> bytes, std::size_t count) : bytes_(bytes), count_(count) {}

  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] Iterator begin() const { return Iterator(bytes_.data()); }
  [[nodiscard]] Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }
  // For random access; the views point into the file.
  [[nodiscard]] std::vector<std::string_view> to_vector() const;

 private:
  std::span<const std::byte> bytes_;
  std::size_t count_ = 0;
};

// One key and its value as they lie in the file.
struct GgufPair {
  std::string_view key;
  GgufType type = GgufType::kU8;
  GgufType element_type = GgufType::kU8;  // of an array, else equal to type
  std::uint64_t count = 1;                // elements of an array, else 1
  std::span<const std::byte> bytes;       // the payload without type, count, or a string's length
  std::uint64_t file_offset = 0;          // of the payload

  // "u32", "array of 3 i32"
  [[nodiscard]] std::string type_text() const;
  // The value for people: strings quoted and escaped, long ones and arrays cut after `limit`
  // characters.
  [[nodiscard]] std::string value_text(std::size_t limit = 60) const;
};

// One tensor, its place checked. `bytes` may be unaligned (some writers do not pad): read it with
// memcpy.
struct GgufTensor {
  std::string_view name;
  int dims = 1;
  std::array<std::uint64_t, 4> ne = {1, 1, 1,
                                     1};  // ne[0] is contiguous; entries from `dims` on are 1
  quant::Format format = quant::Format::kF32;
  std::uint32_t type_id = 0;      // as in the file
  std::string_view type_name;     // "Q1_0", "Q2_0", "Q2_0 (128, older)"
  std::uint64_t offset = 0;       // relative to the data section
  std::uint64_t file_offset = 0;  // of the first byte
  std::span<const std::byte> bytes;

  [[nodiscard]] std::uint64_t elements() const { return ne[0] * ne[1] * ne[2] * ne[3]; }
  [[nodiscard]] std::uint64_t row_elements() const { return ne[0]; }
  [[nodiscard]] std::uint64_t rows() const { return ne[1] * ne[2] * ne[3]; }
  // "[2048, 151669]", ne order
  [[nodiscard]] std::string shape_text() const;
};

struct GgufOptions {
  // Which reading of an ambiguous type id to take: "q2_0-g64" or "q2_0-g128". Empty: decide
  // from the offsets.
  std::string layout;
};

// Messages carry no path: the caller prefixes "<path>: ".
class GgufFile {
 public:
  // Reads from memory, which must outlive the result.
  [[nodiscard]] static Result<GgufFile> read(std::span<const std::byte> file,
                                             const GgufOptions& options = {});
  // Reads from a mapped file and keeps it mapped.
  [[nodiscard]] static Result<GgufFile> open(std::shared_ptr<const FileMap> file,
                                             const GgufOptions& options = {});

  [[nodiscard]] std::uint32_t version() const { return version_; }
  [[nodiscard]] std::uint64_t alignment() const { return alignment_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
  [[nodiscard]] std::uint64_t data_offset() const { return data_offset_; }

  // In file order.
  [[nodiscard]] std::span<const GgufPair> pairs() const { return pairs_; }
  [[nodiscard]] std::span<const GgufTensor> tensors() const { return tensors_; }
  // Sentences for the user that are no errors: bytes after the last tensor, an assumed layout.
  [[nodiscard]] std::span<const std::string> notes() const { return notes_; }

  // nullptr when there is none.
  [[nodiscard]] const GgufPair* find(std::string_view key) const;
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }

  // Typed values. An absent key is kNotFound ("key '<key>' is missing"), another type kInvalidFile
  // ("key '<key>' is <type>, expected <type>"). Integers may be of any integer type: get_u64
  // refuses negative values, get_u32 also those from 2^32 on, get_i64 those from 2^63 on. get_f32
  // takes f32 and f64, and any float value, NaN too.
  [[nodiscard]] Result<std::uint64_t> get_u64(std::string_view key) const;
  [[nodiscard]] Result<std::uint32_t> get_u32(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> get_i64(std::string_view key) const;
  [[nodiscard]] Result<float> get_f32(std::string_view key) const;
  [[nodiscard]] Result<bool> get_bool(std::string_view key) const;
  [[nodiscard]] Result<std::string_view> get_string(std::string_view key) const;
  [[nodiscard]] Result<GgufStrings> get_strings(std::string_view key) const;
  // Arrays of any integer type (bools too, as 0 and 1) and of f32 or f64.
  [[nodiscard]] Result<std::vector<std::int64_t>> get_ints(std::string_view key) const;
  [[nodiscard]] Result<std::vector<float>> get_floats(std::string_view key) const;

  // The same with a default for an absent key; a key of another type stays an error.
  [[nodiscard]] Result<std::uint64_t> get_u64(std::string_view key, std::uint64_t fallback) const;
  [[nodiscard]] Result<std::uint32_t> get_u32(std::string_view key, std::uint32_t fallback) const;
  [[nodiscard]] Result<std::int64_t> get_i64(std::string_view key, std::int64_t fallback) const;
  [[nodiscard]] Result<float> get_f32(std::string_view key, float fallback) const;
  [[nodiscard]] Result<bool> get_bool(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<std::string_view> get_string(std::string_view key,
                                                    std::string_view fallback) const;

 private:
  GgufFile() = default;

  std::shared_ptr<const FileMap> map_;  // null when read from memory
  std::uint32_t version_ = 3;
  std::uint64_t alignment_ = 32;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t data_offset_ = 0;
  std::vector<GgufPair> pairs_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, std::size_t> pair_index_;
  std::map<std::string_view, std::size_t> tensor_index_;
  std::vector<std::string> notes_;
};

// Refuses one part of a model that was split over several files (keys split.*).
[[nodiscard]] Result<void> refuse_split(const GgufFile& file);

}  // namespace tern::io
