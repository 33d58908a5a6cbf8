// Two containers, one list of tensors.
#include "io/weights.h"

#include <cstring>
#include <utility>

namespace tern::io {
namespace {

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

// A length and an opening brace, or a length that the reader will refuse in its own words.
bool looks_like_safetensors(std::span<const std::byte> bytes) {
  return bytes.size() > 8 && bytes[8] == std::byte{'{'};
}

WeightTensor from_gguf(const GgufTensor& tensor) {
  WeightTensor weight;
  weight.name = tensor.name;
  weight.format = tensor.format;
  weight.type_name = tensor.type_name;
  for (int d = tensor.dims - 1; d >= 0; --d) {
    weight.shape.push_back(static_cast<std::int64_t>(tensor.ne[static_cast<std::size_t>(d)]));
  }
  weight.bytes = tensor.bytes;
  weight.file_offset = tensor.file_offset;
  return weight;
}

}  // namespace

std::int64_t WeightTensor::elements() const {
  std::int64_t product = 1;  // the readers keep it below 2^63
  for (const std::int64_t dimension : shape) product *= dimension;
  return product;
}

void WeightFile::add(WeightTensor tensor) {
  index_.emplace(tensor.name, tensors_.size());
  tensors_.push_back(std::move(tensor));
}

Result<WeightFile> WeightFile::open(std::shared_ptr<const FileMap> file,
                                    const GgufOptions& options) {
  WeightFile weights;
  weights.file_ = file;
  if (!starts_with(file->bytes(), "GGUF") && looks_like_safetensors(file->bytes())) {
    auto safetensors = SafetensorsFile::open(file);
    if (!safetensors.ok()) return safetensors.error();
    weights.safetensors_ = std::make_shared<const SafetensorsFile>(std::move(*safetensors));
    for (const SafetensorsTensor& tensor : weights.safetensors_->tensors()) {
      const auto format = tensor.format();
      if (!format) continue;
      weights.add({tensor.name, *format, safetensors_type_name(tensor.type), tensor.shape,
                   tensor.bytes, tensor.file_offset});
    }
    return weights;
  }
  auto gguf = GgufFile::open(file, options);
  if (!gguf.ok()) return gguf.error();
  TERN_TRY(refuse_split(*gguf));
  weights.gguf_ = std::make_shared<const GgufFile>(std::move(*gguf));
  for (const GgufTensor& tensor : weights.gguf_->tensors()) weights.add(from_gguf(tensor));
  return weights;
}

Result<WeightFile> WeightFile::open(const std::filesystem::path& path, const GgufOptions& options,
                                    FileMap::Mode mode) {
  auto map = FileMap::open(path, mode);
  if (!map.ok()) return map.error();
  auto weights = open(std::make_shared<const FileMap>(std::move(*map)), options);
  if (!weights.ok()) {
    const Error& error = weights.error();
    return fail(error.code(), "{}: {}", path.string(), error.message());
  }
  return weights;
}

const WeightTensor* WeightFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::string> WeightFile::notes() const {
  if (gguf_ == nullptr) return {};
  return gguf_->notes();
}

}  // namespace tern::io
