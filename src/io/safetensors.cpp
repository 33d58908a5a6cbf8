// Every size and range of a safetensors file is checked before a view of it is given out.
#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_file.h"
#include "base/byte_reader.h"
#include "base/checked.h"
#include "base/file_map.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "io/gguf_header.h"
#include "io/safetensors_header.h"

namespace tern::io {
namespace {

struct TypeRow {
  std::string_view name;
  std::uint64_t bytes;
};
// In the order of the enumeration.
constexpr std::array<TypeRow, 15> kTypes = {{{"BOOL", 1},
                                             {"U8", 1},
                                             {"I8", 1},
                                             {"F8_E4M3", 1},
                                             {"F8_E5M2", 1},
                                             {"U16", 2},
                                             {"I16", 2},
                                             {"F16", 2},
                                             {"BF16", 2},
                                             {"U32", 4},
                                             {"I32", 4},
                                             {"F32", 4},
                                             {"U64", 8},
                                             {"I64", 8},
                                             {"F64", 8}}};

std::optional<SafetensorsType> type_of(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &TypeRow::name);
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<SafetensorsType>(found - kTypes.begin());
}

// The length of the header, once it is known to be inside the file.
Result<std::uint64_t> header_length(std::span<const std::byte> file) {
  if (file.size() < 8) {
    return fail(ErrorCode::kInvalidFile,
                "damaged or incomplete: a safetensors file has at least 8 bytes, this one {}",
                file.size());
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  if (length > file.size() - 8) {
    const auto first = [&](std::size_t i) { return std::to_integer<unsigned>(file[i]); };
    if ((first(0) == 'P' && first(1) == 'K') || (first(0) == 0x80 && first(1) <= 5)) {
      return fail(ErrorCode::kInvalidFile,
                  "not a model file Tern knows (first bytes {:02x}{:02x}{:02x}{:02x}: {})",
                  first(0), first(1), first(2), first(3),
                  first(0) == 'P' ? "a ZIP archive" : "a pickle, which is never executed");
    }
    return fail(
        ErrorCode::kInvalidFile,
        "damaged or incomplete: the header needs {} bytes after the first 8, the file has {}",
        length, file.size());
  }
  if (length > limits::kSafetensorsHeaderBytes) {
    return fail(ErrorCode::kInvalidFile, "the header has {} bytes, at most {} are allowed", length,
                limits::kSafetensorsHeaderBytes);
  }
  return length;
}

// Elements times size, below 2^63.
Result<std::uint64_t> bytes_of(const SafetensorsEntry& entry, SafetensorsType type) {
  std::uint64_t elements = 1;
  bool is_empty = false;
  for (const std::uint64_t dimension : *entry.shape) {
    is_empty = is_empty || dimension == 0;
    if (dimension > limits::kTensorElements) {
      return fail(ErrorCode::kInvalidFile, "tensor '{}' has a dimension of {}, at most 2^63 - 1",
                  escape_for_message(entry.name), dimension);
    }
    const auto product = checked_mul(elements, std::max<std::uint64_t>(dimension, 1));
    const auto bytes = product ? checked_mul(*product, safetensors_type_bytes(type)) : std::nullopt;
    if (!bytes || *bytes > limits::kTensorElements) {
      return fail(ErrorCode::kInvalidFile,
                  "the element count of tensor '{}' overflows (2^63 - 1 bytes at most)",
                  escape_for_message(entry.name));
    }
    elements = *product;
  }
  return is_empty ? 0 : elements * safetensors_type_bytes(type);
}

Error missing_field(const SafetensorsEntry& entry, std::string_view field) {
  return fail(ErrorCode::kInvalidFile, "tensor '{}' has no field '{}'",
              escape_for_message(entry.name), field);
}

Result<SafetensorsTensor> tensor_of(const SafetensorsEntry& entry, std::span<const std::byte> file,
                                    std::uint64_t data_start) {
  const std::string name = escape_for_message(entry.name);
  if (!entry.dtype) return missing_field(entry, "dtype");
  if (!entry.shape) return missing_field(entry, "shape");
  if (!entry.data_offsets) return missing_field(entry, "data_offsets");
  if (entry.data_offsets->size() != 2) {
    return fail(ErrorCode::kInvalidFile, "tensor '{}' has {} data_offsets, expected 2", name,
                entry.data_offsets->size());
  }
  const std::uint64_t begin = entry.data_offsets->front();
  const std::uint64_t end = entry.data_offsets->back();
  if (begin > end) {
    return fail(ErrorCode::kInvalidFile, "tensor '{}' has data_offsets {}..{}, begin after end",
                name, begin, end);
  }
  const std::uint64_t data_bytes = file.size() - data_start;
  if (end > data_bytes) {
    const auto file_begin = checked_add(data_start, begin);
    return beyond_file(fmt::format("tensor '{}'", name), file_begin.value_or(begin), end - begin,
                       file.size());
  }
  const auto type = type_of(*entry.dtype);
  if (!type) {
    return fail(ErrorCode::kUnsupported, "tensor '{}' has dtype '{}', which Tern does not know",
                name, escape_for_message(*entry.dtype));
  }
  const auto bytes = bytes_of(entry, *type);
  if (!bytes.ok()) return bytes.error();
  SafetensorsTensor tensor;
  tensor.name = entry.name;
  tensor.type = *type;
  for (const std::uint64_t dimension : *entry.shape) {
    tensor.shape.push_back(static_cast<std::int64_t>(dimension));
  }
  if (*bytes != end - begin) {
    return fail(ErrorCode::kInvalidFile,
                "tensor '{}': shape {} of {} needs {} bytes, its range has {}", name,
                tensor.shape_text(), *entry.dtype, *bytes, end - begin);
  }
  tensor.file_offset = data_start + begin;
  tensor.bytes =
      file.subspan(static_cast<std::size_t>(tensor.file_offset), static_cast<std::size_t>(*bytes));
  return tensor;
}

// The ranges, sorted, follow each other from the start of the data to the end of the file.
Result<void> check_cover(std::span<const SafetensorsTensor> tensors, std::uint64_t data_start,
                         std::uint64_t file_bytes) {
  std::vector<const SafetensorsTensor*> sorted;
  sorted.reserve(tensors.size());
  for (const SafetensorsTensor& tensor : tensors) sorted.push_back(&tensor);
  std::ranges::sort(sorted, {}, [](const SafetensorsTensor* tensor) {
    return std::tuple(tensor->file_offset, tensor->bytes.size(), tensor);
  });
  std::uint64_t position = data_start;
  const SafetensorsTensor* before = nullptr;
  for (const SafetensorsTensor* tensor : sorted) {
    const std::string name = escape_for_message(tensor->name);
    if (tensor->file_offset < position) {
      return fail(ErrorCode::kInvalidFile, "tensors '{}' and '{}' overlap (offset {})",
                  escape_for_message(before->name), name, tensor->file_offset);
    }
    if (tensor->file_offset > position) {
      return fail(
          ErrorCode::kInvalidFile,
          "bytes {}..{} before tensor '{}' belong to no tensor, the ranges must cover the data",
          position, tensor->file_offset, name);
    }
    position += tensor->bytes.size();
    before = tensor;
  }
  if (position != file_bytes) {
    return fail(ErrorCode::kInvalidFile,
                "{} bytes after the last tensor (offset {}), the ranges must cover the data",
                file_bytes - position, position);
  }
  return {};
}

}  // namespace

std::string_view safetensors_type_name(SafetensorsType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}
std::uint64_t safetensors_type_bytes(SafetensorsType type) {
  return kTypes[static_cast<std::size_t>(type)].bytes;
}

std::int64_t SafetensorsTensor::elements() const {
  return static_cast<std::int64_t>(bytes.size() / safetensors_type_bytes(type));
}
std::optional<quant::Format> SafetensorsTensor::format() const {
  switch (type) {
    case SafetensorsType::kF32:
      return quant::Format::kF32;
    case SafetensorsType::kF16:
      return quant::Format::kF16;
    case SafetensorsType::kBf16:
      return quant::Format::kBf16;
    default:
      return std::nullopt;
  }
}
std::string SafetensorsTensor::shape_text() const {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}
void SafetensorsTensor::copy_bytes(void* to, std::span<const std::byte> from) {
  std::memcpy(to, from.data(), from.size());
}

Result<SafetensorsFile> SafetensorsFile::read(std::span<const std::byte> bytes) {
  const auto length = header_length(bytes);
  if (!length.ok()) return length.error();
  const auto text = std::string_view(reinterpret_cast<const char*>(bytes.data()) + 8,
                                     static_cast<std::size_t>(*length));
  auto header = parse_safetensors_header(text);
  if (!header.ok()) return header.error();
  SafetensorsFile file;
  const std::uint64_t data_start = 8 + *length;
  file.tensors_.reserve(header->entries.size());
  for (const SafetensorsEntry& entry : header->entries) {
    auto tensor = tensor_of(entry, bytes, data_start);
    if (!tensor.ok()) return tensor.error();
    file.index_.emplace(tensor->name, file.tensors_.size());
    file.tensors_.push_back(std::move(*tensor));
  }
  TERN_TRY(check_cover(file.tensors_, data_start, bytes.size()));
  file.metadata_ = std::move(header->metadata);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::open(std::shared_ptr<const FileMap> map) {
  auto file = read(map->bytes());
  if (file.ok()) file->map_ = std::move(map);
  return file;
}

const SafetensorsTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsWriter::set_metadata(std::string_view key, std::string_view value) {
  metadata_.insert_or_assign(std::string(key), std::string(value));
}
void SafetensorsWriter::add(std::string_view name, SafetensorsType type,
                            std::span<const std::int64_t> shape, std::span<const std::byte> bytes) {
  SafetensorsTensor tensor;
  tensor.name = name;
  tensor.type = type;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.bytes = bytes;
  tensors_.push_back(std::move(tensor));
}
void SafetensorsWriter::add_f32(std::string_view name, std::span<const std::int64_t> shape,
                                std::span<const float> values) {
  add(name, SafetensorsType::kF32, shape, std::as_bytes(values));
}
void SafetensorsWriter::add_i32(std::string_view name, std::span<const std::int64_t> shape,
                                std::span<const std::int32_t> values) {
  add(name, SafetensorsType::kI32, shape, std::as_bytes(values));
}

std::string SafetensorsWriter::header() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata_.empty()) json["__metadata__"] = metadata_;
  std::uint64_t position = 0;
  for (const SafetensorsTensor& tensor : tensors_) {
    json[tensor.name] = {{"dtype", safetensors_type_name(tensor.type)},
                         {"shape", tensor.shape},
                         {"data_offsets", {position, position + tensor.bytes.size()}}};
    position += tensor.bytes.size();
  }
  std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::string result(sizeof length, '\0');
  std::memcpy(result.data(), &length, sizeof length);
  return result + text;
}

std::vector<std::byte> SafetensorsWriter::to_bytes() const {
  const std::string head = header();
  const auto start = std::as_bytes(std::span(head.data(), head.size()));
  std::vector<std::byte> all(start.begin(), start.end());
  for (const SafetensorsTensor& tensor : tensors_) {
    all.insert(all.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  return all;
}

Result<void> SafetensorsWriter::write(const std::filesystem::path& path, bool overwrite) const {
  const std::string head = header();
  AtomicFile::Options options;
  options.overwrite = overwrite;
  options.expected_bytes = head.size();
  for (const SafetensorsTensor& tensor : tensors_) *options.expected_bytes += tensor.bytes.size();
  auto file = AtomicFile::create(path, options);
  if (!file.ok()) return file.error();
  TERN_TRY(file->write(head));
  for (const SafetensorsTensor& tensor : tensors_) TERN_TRY(file->write(tensor.bytes));
  return file->commit();
}

}  // namespace tern::io
