// The writer: pairs are kept as file bytes, tensors as sources.
#include "io/gguf_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/atomic_file.h"
#include "base/checked.h"
#include "io/gguf_types.h"

namespace tern::io {
namespace {

template <class T>
void put(std::vector<std::byte>& to, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof value);
  to.insert(to.end(), bytes, bytes + sizeof(T));
}
void put_string(std::vector<std::byte>& to, std::string_view text) {
  put(to, static_cast<std::uint64_t>(text.size()));
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  to.insert(to.end(), bytes.begin(), bytes.end());
}
template <class T>
void put_array(std::vector<std::byte>& to, GgufType type, std::span<const T> values) {
  put(to, static_cast<std::uint32_t>(type));
  put(to, static_cast<std::uint64_t>(values.size()));
  for (const T& value : values) {
    if constexpr (std::is_convertible_v<T, std::string_view>) {
      put_string(to, value);
    } else if constexpr (std::is_same_v<T, bool>) {
      put(to, static_cast<std::uint8_t>(value ? 1 : 0));
    } else {
      put(to, value);
    }
  }
}

std::uint64_t aligned(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

Result<void> write_zeros(const ByteSink& sink, std::uint64_t count) {
  constexpr std::array<std::byte, 4096> kZeros{};
  while (count > 0) {
    const std::uint64_t piece = std::min<std::uint64_t>(count, kZeros.size());
    TERN_TRY(sink(std::span(kZeros).first(static_cast<std::size_t>(piece))));
    count -= piece;
  }
  return {};
}

}  // namespace

GgufWriter::GgufWriter(const Options& options) : options_(options) {
  if (options.alignment != 32) {
    add_u32("general.alignment", static_cast<std::uint32_t>(options.alignment));
  }
}

void GgufWriter::begin_pair(std::string_view key, GgufType type) {
  ++pair_count_;
  put_string(pairs_, key);
  put(pairs_, static_cast<std::uint32_t>(type));
}

void GgufWriter::add_u8(std::string_view key, std::uint8_t value) {
  begin_pair(key, GgufType::kU8);
  put(pairs_, value);
}
void GgufWriter::add_u32(std::string_view key, std::uint32_t value) {
  begin_pair(key, GgufType::kU32);
  put(pairs_, value);
}
void GgufWriter::add_i32(std::string_view key, std::int32_t value) {
  begin_pair(key, GgufType::kI32);
  put(pairs_, value);
}
void GgufWriter::add_u64(std::string_view key, std::uint64_t value) {
  begin_pair(key, GgufType::kU64);
  put(pairs_, value);
}
void GgufWriter::add_i64(std::string_view key, std::int64_t value) {
  begin_pair(key, GgufType::kI64);
  put(pairs_, value);
}
void GgufWriter::add_f32(std::string_view key, float value) {
  begin_pair(key, GgufType::kF32);
  put(pairs_, value);
}
void GgufWriter::add_f64(std::string_view key, double value) {
  begin_pair(key, GgufType::kF64);
  put(pairs_, value);
}
void GgufWriter::add_bool(std::string_view key, bool value) {
  begin_pair(key, GgufType::kBool);
  put(pairs_, static_cast<std::uint8_t>(value ? 1 : 0));
}
void GgufWriter::add_string(std::string_view key, std::string_view value) {
  begin_pair(key, GgufType::kString);
  put_string(pairs_, value);
}
void GgufWriter::add_strings(std::string_view key, std::span<const std::string> values) {
  begin_pair(key, GgufType::kArray);
  put_array(pairs_, GgufType::kString, values);
}
void GgufWriter::add_strings(std::string_view key, std::span<const std::string_view> values) {
  begin_pair(key, GgufType::kArray);
  put_array(pairs_, GgufType::kString, values);
}
void GgufWriter::add_i32s(std::string_view key, std::span<const std::int32_t> values) {
  begin_pair(key, GgufType::kArray);
  put_array(pairs_, GgufType::kI32, values);
}
void GgufWriter::add_f32s(std::string_view key, std::span<const float> values) {
  begin_pair(key, GgufType::kArray);
  put_array(pairs_, GgufType::kF32, values);
}
void GgufWriter::add_bools(std::string_view key, std::span<const bool> values) {
  begin_pair(key, GgufType::kArray);
  put_array(pairs_, GgufType::kBool, values);
}

void GgufWriter::add_pair(const GgufPair& pair) {
  begin_pair(pair.key, pair.type);
  if (pair.type == GgufType::kArray) {
    put(pairs_, static_cast<std::uint32_t>(pair.element_type));
    put(pairs_, pair.count);
  } else if (pair.type == GgufType::kString) {
    put(pairs_, static_cast<std::uint64_t>(pair.bytes.size()));
  }
  pairs_.insert(pairs_.end(), pair.bytes.begin(), pair.bytes.end());
}

void GgufWriter::add_raw(std::string_view key, std::uint32_t type,
                         std::span<const std::byte> payload) {
  begin_pair(key, static_cast<GgufType>(type));
  pairs_.insert(pairs_.end(), payload.begin(), payload.end());
}

void GgufWriter::add_tensor(std::string_view name, std::span<const std::uint64_t> ne,
                            std::uint32_t type_id, std::span<const std::byte> bytes) {
  add_tensor(name, ne, type_id, bytes.size(),
             [bytes](const ByteSink& sink) { return sink(bytes); });
}

void GgufWriter::add_tensor(std::string_view name, std::span<const std::uint64_t> ne,
                            quant::Format format, std::span<const std::byte> bytes) {
  add_tensor(name, ne, type_id_of(format), bytes);
}

void GgufWriter::add_tensor(std::string_view name, std::span<const std::uint64_t> ne,
                            std::uint32_t type_id, std::uint64_t bytes, TensorSource source) {
  Tensor tensor;
  tensor.name = name;
  tensor.ne.assign(ne.begin(), ne.end());
  tensor.type_id = type_id;
  tensor.bytes = bytes;
  tensor.offset =
      options_.pads_between_tensors ? aligned(data_bytes_, options_.alignment) : data_bytes_;
  tensor.source = std::move(source);
  data_bytes_ = tensor.offset + bytes;
  tensors_.push_back(std::move(tensor));
}

std::vector<std::byte> GgufWriter::header() const {
  std::vector<std::byte> bytes;
  for (const char c : std::string_view("GGUF")) bytes.push_back(static_cast<std::byte>(c));
  put(bytes, options_.version);
  put(bytes, static_cast<std::uint64_t>(tensors_.size()));
  put(bytes, pair_count_);
  bytes.insert(bytes.end(), pairs_.begin(), pairs_.end());
  for (const Tensor& tensor : tensors_) {
    put_string(bytes, tensor.name);
    put(bytes, static_cast<std::uint32_t>(tensor.ne.size()));
    for (const std::uint64_t ne : tensor.ne) put(bytes, ne);
    put(bytes, tensor.type_id);
    put(bytes, tensor.offset);
  }
  bytes.resize(static_cast<std::size_t>(aligned(bytes.size(), options_.alignment)));
  return bytes;
}

// The last tensor is padded too, as other writers do.
std::uint64_t GgufWriter::file_bytes() const {
  const std::uint64_t data =
      options_.pads_between_tensors ? aligned(data_bytes_, options_.alignment) : data_bytes_;
  return header().size() + data;
}

Result<void> GgufWriter::write_to(const ByteSink& sink) const {
  const std::vector<std::byte> head = header();
  TERN_TRY(sink(head));
  std::uint64_t position = 0;
  for (const Tensor& tensor : tensors_) {
    TERN_TRY(write_zeros(sink, tensor.offset - position));
    std::uint64_t written = 0;
    const auto counting = [&](std::span<const std::byte> bytes) {
      written += bytes.size();
      return sink(bytes);
    };
    TERN_TRY(tensor.source(counting));
    if (written != tensor.bytes) {
      return fail(ErrorCode::kInternal, "tensor '{}' was announced with {} bytes and has {}",
                  tensor.name, tensor.bytes, written);
    }
    position = tensor.offset + tensor.bytes;
  }
  return write_zeros(sink, file_bytes() - head.size() - position);
}

Result<std::vector<std::byte>> GgufWriter::to_bytes() const {
  std::vector<std::byte> all;
  TERN_TRY(write_to([&](std::span<const std::byte> bytes) -> Result<void> {
    all.insert(all.end(), bytes.begin(), bytes.end());
    return {};
  }));
  return all;
}

Result<void> GgufWriter::write(const std::filesystem::path& path, bool overwrite) const {
  AtomicFile::Options options;
  options.overwrite = overwrite;
  options.expected_bytes = file_bytes();
  auto file = AtomicFile::create(path, options);
  if (!file.ok()) return file.error();
  TERN_TRY(write_to([&](std::span<const std::byte> bytes) { return file->write(bytes); }));
  return file->commit();
}

}  // namespace tern::io
