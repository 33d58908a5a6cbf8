// A GGUF file as a whole: header, layouts, and every tensor's place inside the file.
#include "io/gguf.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/file_map.h"
#include "io/gguf_header.h"
#include "io/gguf_types.h"
#include "io/layout_replay.h"

namespace tern::io {
namespace {

// 1048576 as "1,048,576"
std::string with_commas(std::uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

// The bytes of a tensor, once its whole range is known to lie inside the file.
Result<std::span<const std::byte>> place_of(const GgufTensorInfo& info, const GgufBlock& block,
                                            std::span<const std::byte> file,
                                            std::uint64_t data_offset, std::uint64_t alignment) {
  const auto beyond = [&](std::uint64_t begin, std::uint64_t bytes) {
    return beyond_file(fmt::format("tensor '{}'", info.name), begin, bytes, file.size());
  };
  const auto bytes = checked_mul(info.elements / block.weights, block.bytes);
  const auto begin = checked_add(data_offset, info.offset);
  if (!begin) {
    return fail(ErrorCode::kInvalidFile,
                "damaged or incomplete: tensor '{}' needs bytes from {} + {} on, the file has {}",
                info.name, data_offset, info.offset, file.size());
  }
  if (!bytes) {
    return fail(ErrorCode::kInvalidFile,
                "damaged or incomplete: tensor '{}' needs {} x {} bytes, the file has {}",
                info.name, info.elements / block.weights, block.bytes, file.size());
  }
  if (*begin >= file.size()) return beyond(*begin, *bytes);
  if (info.offset % alignment != 0) {
    return fail(ErrorCode::kInvalidFile,
                "tensor '{}' has offset {}, not a multiple of the alignment of {}", info.name,
                info.offset, alignment);
  }
  if (*bytes > file.size() - *begin) return beyond(*begin, *bytes);
  return file.subspan(static_cast<std::size_t>(*begin), static_cast<std::size_t>(*bytes));
}

Result<void> check_overlaps(std::span<const GgufTensor> tensors) {
  std::vector<const GgufTensor*> sorted;
  sorted.reserve(tensors.size());
  for (const GgufTensor& tensor : tensors) sorted.push_back(&tensor);
  std::ranges::sort(
      sorted, {}, [](const GgufTensor* tensor) { return std::pair(tensor->file_offset, tensor); });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const GgufTensor& before = *sorted[i - 1];
    const GgufTensor& after = *sorted[i];
    const std::uint64_t end = before.file_offset + before.bytes.size();
    if (end <= after.file_offset) continue;
    return fail(ErrorCode::kInvalidFile,
                "tensors '{}' (bytes {}..{}) and '{}' (bytes {}..{}) overlap", before.name,
                before.file_offset, end, after.name, after.file_offset,
                after.file_offset + after.bytes.size());
  }
  return {};
}

// What a key of another writer says about the order in its blocks of 34 bytes.
bool declares_codes_first(const GgufFile& file) {
  const auto version = file.get_string("general.quantization_version");
  if (version.ok() && *version == "TQ2_0_G128") return true;
  const auto format = file.get_string("oxibonsai.quant_format");
  if (!format.ok()) return false;
  std::string lower(*format);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.find("tq2_0_g128") != std::string::npos;
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Under id 42 the scale of a block of 34 bytes may stand last: such files are refused by name. The
// result is a note, or empty.
Result<std::string> check_scale_place(const GgufFile& file) {
  std::vector<std::span<const std::byte>> bytes;
  const GgufTensor* first = nullptr;
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.type_id != 42 || tensor.format != quant::Format::kT2G128) continue;
    if (first == nullptr) first = &tensor;
    bytes.push_back(tensor.bytes);
  }
  if (first == nullptr) return std::string();
  const auto codes_first = [first] {
    return Error(ErrorCode::kUnsupported,
                 unreadable_type_message(first->name, 42, "TQ2_0_g128: codes first, the scale last",
                                         first->offset));
  };
  if (declares_codes_first(file)) return codes_first();
  const ScalePlaces places = sample_scale_places(bytes);
  if (places.bad_first > 0 && places.bad_last > 0) {
    return fail(
        ErrorCode::kInvalidFile,
        "type 42 blocks look damaged: {:.1f}% bad scales or codes read scale-first, {:.1f}% "
        "scale-last",
        percent(places.bad_first, places.blocks), percent(places.bad_last, places.blocks));
  }
  if (places.bad_first > 0) return codes_first();
  if (places.bad_last > 0) return std::string();
  return std::string(
      "type 42 in groups of 128: nothing tells whether the scale stands first or last in a block, "
      "first is assumed");
}

}  // namespace

std::string GgufTensor::shape_text() const {
  std::string text = "[";
  for (int d = 0; d < dims; ++d) {
    text += fmt::format("{}{}", d == 0 ? "" : ", ", ne[static_cast<std::size_t>(d)]);
  }
  return text + "]";
}

Result<GgufFile> GgufFile::read(std::span<const std::byte> bytes, const GgufOptions& options) {
  auto header = read_gguf_header(bytes);
  if (!header.ok()) return header.error();
  auto layouts = resolve_layouts(*header, bytes.size(), options.layout);
  if (!layouts.ok()) return layouts.error();

  GgufFile file;
  file.version_ = header->version;
  file.alignment_ = header->alignment;
  file.file_bytes_ = bytes.size();
  file.data_offset_ = header->data_offset;
  file.tensors_.reserve(header->tensors.size());
  std::uint64_t end = header->tensors.empty() ? header->end : header->data_offset;
  for (std::size_t i = 0; i < header->tensors.size(); ++i) {
    const GgufTensorInfo& info = header->tensors[i];
    const GgufBlock& block = layouts->blocks[i];
    const auto place = place_of(info, block, bytes, header->data_offset, layouts->alignment);
    if (!place.ok()) return place.error();
    GgufTensor tensor;
    tensor.name = info.name;
    tensor.dims = info.dims;
    tensor.ne = info.ne;
    tensor.format = *block.format;
    tensor.type_id = info.type_id;
    tensor.type_name = block.name;
    tensor.offset = info.offset;
    tensor.file_offset = header->data_offset + info.offset;
    tensor.bytes = *place;
    end = std::max(end, tensor.file_offset + tensor.bytes.size());
    file.tensors_.push_back(tensor);
  }
  TERN_TRY(check_overlaps(file.tensors_));
  file.pairs_ = std::move(header->pairs);
  file.pair_index_ = std::move(header->pair_index);
  file.tensor_index_ = std::move(header->tensor_index);
  file.notes_ = std::move(layouts->notes);

  auto scale_note = check_scale_place(file);
  if (!scale_note.ok()) return scale_note.error();
  if (!scale_note->empty()) file.notes_.push_back(std::move(*scale_note));
  // padding up to the next multiple of the alignment is part of an ordinary file
  if (bytes.size() > *checked_align(end, file.alignment_)) {
    file.notes_.push_back(
        fmt::format("{} bytes after the last tensor are ignored", with_commas(bytes.size() - end)));
  }
  return file;
}

Result<GgufFile> GgufFile::open(std::shared_ptr<const FileMap> map, const GgufOptions& options) {
  auto file = read(map->bytes(), options);
  if (file.ok()) file->map_ = std::move(map);
  return file;
}

const GgufPair* GgufFile::find(std::string_view key) const {
  const auto found = pair_index_.find(key);
  return found == pair_index_.end() ? nullptr : &pairs_[found->second];
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

Result<void> refuse_split(const GgufFile& file) {
  const auto count = file.get_u64("split.count", 1);
  if (!count.ok()) return count.error();
  const auto number = file.get_u64("split.no", 0);
  if (!number.ok()) return number.error();
  if (*count <= 1 && *number == 0) return {};
  if (*number >= *count) {
    return fail(ErrorCode::kInvalidFile, "key 'split.no' is {}, but 'split.count' is {}", *number,
                *count);
  }
  return fail(
      ErrorCode::kUnsupported,
      "this is part {} of {} of a split model, and Tern reads one file: the other {} missing; "
      "merge the parts into one GGUF first",
      *number + 1, *count, *count == 2 ? "part is" : "parts are");
}

}  // namespace tern::io
