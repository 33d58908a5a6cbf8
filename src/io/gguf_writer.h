// Writes GGUF version 3: keys and tensors in the order in which they are added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/gguf.h"
#include "quant/format.h"

namespace tern::io {

// Takes the next bytes of a tensor.
using ByteSink = std::function<Result<void>(std::span<const std::byte>)>;
// Produces all bytes of a tensor, front to back, in pieces of any size.
using TensorSource = std::function<Result<void>(const ByteSink&)>;

// Writes what it is told: names, ids and sizes are not judged, so that tests can write damaged
// files with it. Only the number of bytes that a source produces is checked against the number that
// was announced.
class GgufWriter {
 public:
  struct Options {
    std::uint32_t version = 3;
    std::uint64_t alignment = 32;      // other than 32: also written as general.alignment
    bool pads_between_tensors = true;  // one known writer does not
  };

  GgufWriter() : GgufWriter(Options{}) {}
  explicit GgufWriter(const Options& options);

  void add_u8(std::string_view key, std::uint8_t value);
  void add_u32(std::string_view key, std::uint32_t value);
  void add_i32(std::string_view key, std::int32_t value);
  void add_u64(std::string_view key, std::uint64_t value);
  void add_i64(std::string_view key, std::int64_t value);
  void add_f32(std::string_view key, float value);
  void add_f64(std::string_view key, double value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_strings(std::string_view key, std::span<const std::string_view> values);
  void add_i32s(std::string_view key, std::span<const std::int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);
  void add_bools(std::string_view key, std::span<const bool> values);
  // A pair of another file, byte for byte.
  void add_pair(const GgufPair& pair);
  // A pair of any type: `payload` is what follows the type.
  void add_raw(std::string_view key, std::uint32_t type, std::span<const std::byte> payload);

  // `ne` has 1 to 4 entries, ne[0] contiguous. The bytes must stay valid until the file is written.
  void add_tensor(std::string_view name, std::span<const std::uint64_t> ne, std::uint32_t type_id,
                  std::span<const std::byte> bytes);
  void add_tensor(std::string_view name, std::span<const std::uint64_t> ne, quant::Format format,
                  std::span<const std::byte> bytes);
  // A tensor of `bytes` bytes that is produced while the file is written.
  void add_tensor(std::string_view name, std::span<const std::uint64_t> ne, std::uint32_t type_id,
                  std::uint64_t bytes, TensorSource source);

  // Header and padding up to the first tensor.
  [[nodiscard]] std::vector<std::byte> header() const;
  [[nodiscard]] std::uint64_t file_bytes() const;

  // The whole file in memory, for tests and small files.
  [[nodiscard]] Result<std::vector<std::byte>> to_bytes() const;
  // The whole file on disk, under its name only when it is complete.
  [[nodiscard]] Result<void> write(const std::filesystem::path& path, bool overwrite = false) const;

 private:
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> ne;
    std::uint32_t type_id = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
    TensorSource source;
  };

  void begin_pair(std::string_view key, GgufType type);
  Result<void> write_to(const ByteSink& sink) const;

  Options options_;
  std::uint64_t pair_count_ = 0;
  std::vector<std::byte> pairs_;  // as in the file
  std::vector<Tensor> tensors_;
  std::uint64_t data_bytes_ = 0;  // up to the end of the last tensor
};

}  // namespace tern::io
