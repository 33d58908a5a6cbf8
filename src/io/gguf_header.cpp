// Walks over a GGUF header once, front to back; nothing is allocated by a count that the file does
// not back.
#include "io/gguf_header.h"

#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "base/byte_reader.h"
#include "base/checked.h"
#include "base/limits.h"
#include "base/utf8.h"

namespace tern::io {
namespace {

constexpr std::uint64_t kHeaderBytes = 24;  // magic, version, two counts
constexpr std::uint64_t kLeastPair = 13;    // empty key, type, one byte of value
constexpr std::uint64_t kLeastTensor = 32;  // empty name, n_dims, one dimension, type, offset
constexpr std::uint64_t kLastType = 12;

// "key 'a'", as messages name it
std::string key_name(std::string_view key) {
  return fmt::format("key '{}'", escape_for_message(key));
}

Error not_gguf(std::span<const std::byte> file) {
  std::string digits;
  for (const std::byte b : file.first(std::min<std::size_t>(4, file.size()))) {
    digits += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  }
  if (file.size() >= 4) {
    return fail(ErrorCode::kInvalidFile, "not a model file Tern knows (first bytes {})", digits);
  }
  return fail(ErrorCode::kInvalidFile,
              "not a model file Tern knows (first bytes {}; the file has {} bytes)",
              digits.empty() ? "none" : digits, file.size());
}

Error not_fitting(std::string_view what, std::uint64_t count) {
  return fail(ErrorCode::kInvalidFile, "damaged or incomplete: {} count {} does not fit the file",
              what, count);
}

// The rule for names of keys and tensors: valid UTF-8 without control characters.
bool is_printable(std::string_view text) {
  if (find_invalid_utf8(text)) return false;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> file) : file_(file), reader_(file) {}

  Result<GgufHeader> read() {
    TERN_TRY(read_counts());
    for (std::uint64_t i = 0; i < pair_count_; ++i) TERN_TRY(read_pair(i));
    TERN_TRY(read_alignment());
    for (std::uint64_t i = 0; i < tensor_count_; ++i) TERN_TRY(read_tensor(i));
    header_.end = reader_.position();
    // cannot wrap: the position is a size in memory
    header_.data_offset = *checked_align(header_.end, header_.alignment);
    return std::move(header_);
  }

 private:
  [[nodiscard]] Error beyond(std::string_view what, std::uint64_t bytes) const {
    return beyond_file(what, reader_.position(), bytes, file_.size());
  }

  Result<void> read_counts() {
    constexpr std::string_view kMagic = "GGUF";
    if (file_.size() < kMagic.size() ||
        std::memcmp(file_.data(), kMagic.data(), kMagic.size()) != 0) {
      return not_gguf(file_);
    }
    if (file_.size() < 8) return header_too_short();
    TERN_TRY(reader_.skip(kMagic.size()));
    header_.version = *reader_.u32();
    if (header_.version != 2 && header_.version != 3) return version_error();
    if (file_.size() < kHeaderBytes) return header_too_short();
    tensor_count_ = *reader_.u64();
    pair_count_ = *reader_.u64();
    if (!reader_.count(tensor_count_, kLeastTensor).ok())
      return not_fitting("tensor", tensor_count_);
    if (!reader_.count(pair_count_, kLeastPair).ok()) return not_fitting("key", pair_count_);
    if (tensor_count_ > limits::kGgufTensors) {
      return fail(ErrorCode::kInvalidFile, "the file has {} tensors, at most {} are allowed",
                  tensor_count_, limits::kGgufTensors);
    }
    if (pair_count_ > limits::kGgufPairs) {
      return fail(ErrorCode::kInvalidFile, "the file has {} keys, at most {} are allowed",
                  pair_count_, limits::kGgufPairs);
    }
    return {};
  }
  [[nodiscard]] Error header_too_short() const {
    return fail(ErrorCode::kInvalidFile,
                "damaged or incomplete: the header needs {} bytes, the file has {}", kHeaderBytes,
                file_.size());
  }
  [[nodiscard]] Error version_error() const {
    const std::uint32_t v = header_.version;
    const std::uint32_t swapped = v >> 24 | (v >> 8 & 0xff00U) | (v << 8 & 0xff0000U) | v << 24;
    return fail(
        ErrorCode::kUnsupported, "GGUF version {} is not supported (2 and 3 are){}", v,
        swapped >= 1 && swapped <= 3 ? "; the file was written on a big-endian machine" : "");
  }

  // A length and that many bytes; `what` is built only for an error.
  template <class What>
  Result<std::string_view> read_string(What&& what) {
    auto text = reader_.string();
    if (text.ok()) return text;
    if (reader_.remaining() < 8) return beyond(what(), 8);
    const std::uint64_t length = *reader_.u64();
    return beyond(what(), length);
  }

  Result<void> read_pair(std::uint64_t index) {
    const auto what = [index] { return fmt::format("key {}", index); };
    const std::uint64_t at = reader_.position();
    auto key = read_string(what);
    if (!key.ok()) return key.error();
    if (key->empty()) {
      return fail(ErrorCode::kInvalidFile,
                  "damaged or incomplete: key {} has an empty name (offset {})", index, at);
    }
    if (key->size() > limits::kGgufKeyBytes) {
      return fail(ErrorCode::kInvalidFile, "key {} has a name of {} bytes, longer than {}", index,
                  key->size(), limits::kGgufKeyBytes);
    }
    if (!is_printable(*key)) {
      return fail(ErrorCode::kInvalidFile, "the name of key {}, '{}', is not printable UTF-8",
                  index, escape_for_message(*key));
    }
    GgufPair pair;
    pair.key = *key;
    TERN_TRY(read_value(pair));
    if (!header_.pair_index.emplace(pair.key, header_.pairs.size()).second) {
      return fail(ErrorCode::kInvalidFile, "{} is given twice", key_name(pair.key));
    }
    header_.pairs.push_back(pair);
    return {};
  }

  Result<GgufType> read_type(std::string_view key, std::string_view role) {
    const auto id = reader_.u32();
    if (!id.ok()) return beyond(key_name(key), 4);
    if (*id > kLastType) {
      return fail(ErrorCode::kInvalidFile, "{} is {} type {}, expected a type from 0 to {}",
                  key_name(key), role, *id, kLastType);
    }
    return static_cast<GgufType>(*id);
  }

  Result<void> read_value(GgufPair& pair) {
    const auto type = read_type(pair.key, "of");
    if (!type.ok()) return type.error();
    pair.type = pair.element_type = *type;
    if (*type == GgufType::kString) {
      const auto text = read_string([&] { return key_name(pair.key); });
      if (!text.ok()) return text.error();
      set_payload(pair, reader_.position() - text->size());
      return {};
    }
    if (*type == GgufType::kArray) return read_array(pair);
    const std::uint64_t begin = reader_.position();
    if (!reader_.skip(fixed_size(*type)).ok()) return beyond(key_name(pair.key), fixed_size(*type));
    set_payload(pair, begin);
    return check_bools(pair.key, pair.type, begin);
  }

  void set_payload(GgufPair& pair, std::uint64_t begin) const {
    pair.file_offset = begin;
    pair.bytes = file_.subspan(static_cast<std::size_t>(begin),
                               static_cast<std::size_t>(reader_.position() - begin));
  }

  // From begin to the reader's place.
  Result<void> check_bools(std::string_view key, GgufType type, std::uint64_t begin) const {
    if (type != GgufType::kBool) return {};
    for (std::uint64_t at = begin; at < reader_.position(); ++at) {
      const auto value = std::to_integer<unsigned>(file_[static_cast<std::size_t>(at)]);
      if (value > 1) {
        return fail(ErrorCode::kInvalidFile, "{} is the bool {} (offset {}), must be 0 or 1",
                    key_name(key), value, at);
      }
    }
    return {};
  }

  // An array that is being walked over: elements of arrays are arrays, without recursion.
  struct Level {
    GgufType type;
    std::uint64_t left;
  };

  Result<Level> open_array(std::string_view key) {
    const auto type = read_type(key, "an array of");
    if (!type.ok()) return type.error();
    const auto count = reader_.u64();
    if (!count.ok()) return beyond(key_name(key), 8);
    return Level{*type, *count};
  }

  Result<void> read_array(GgufPair& pair) {
    std::vector<Level> levels;
    auto outer = open_array(pair.key);
    if (!outer.ok()) return outer.error();
    pair.element_type = outer->type;
    pair.count = outer->left;
    const std::uint64_t begin = reader_.position();
    levels.push_back(*outer);
    while (!levels.empty()) {
      Level& level = levels.back();
      if (level.type == GgufType::kArray && level.left > 0) {
        --level.left;
        if (levels.size() >= static_cast<std::size_t>(limits::kGgufArrayNesting)) {
          return fail(ErrorCode::kInvalidFile, "{} nests arrays more than {} deep",
                      key_name(pair.key), limits::kGgufArrayNesting);
        }
        auto inner = open_array(pair.key);
        if (!inner.ok()) return inner.error();
        levels.push_back(*inner);
        continue;
      }
      if (level.type == GgufType::kString) {
        TERN_TRY(skip_strings(pair.key, level.left));
      } else if (level.type != GgufType::kArray) {
        TERN_TRY(skip_numbers(pair.key, level));
      }
      levels.pop_back();
    }
    set_payload(pair, begin);
    return {};
  }

  Result<void> skip_numbers(std::string_view key, const Level& level) {
    const std::uint64_t begin = reader_.position();
    const std::uint64_t size = fixed_size(level.type);
    if (!reader_.count(level.left, size).ok()) return not_fitting(key_name(key), level.left);
    TERN_TRY(reader_.skip(level.left * size));
    return check_bools(key, level.type, begin);
  }

  // A string takes at least 8 bytes, so the loop ends with the file; after each one it is checked
  // that the others can still follow, so that a wrong count is found at once.
  Result<void> skip_strings(std::string_view key, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto what = [&] { return fmt::format("{} element {} of {}", key_name(key), i, count); };
      if (i > 0 && count - i > reader_.remaining() / 8) {
        return beyond(
            fmt::format("{} element {} of {} (and those after it)", key_name(key), i, count),
            checked_mul(count - i, 8).value_or(std::numeric_limits<std::uint64_t>::max()));
      }
      const auto text = read_string(what);
      if (!text.ok()) return text.error();
    }
    return {};
  }

  Result<void> read_alignment() {
    const auto found = header_.pair_index.find("general.alignment");
    if (found == header_.pair_index.end()) return {};
    const GgufPair& pair = header_.pairs[found->second];
    if (pair.type != GgufType::kU32) {
      return fail(ErrorCode::kInvalidFile, "key 'general.alignment' is {}, expected u32",
                  pair.type_text());
    }
    std::uint32_t value = 0;
    std::memcpy(&value, pair.bytes.data(), sizeof value);
    if (value > limits::kGgufAlignment || !std::has_single_bit(value)) {
      return fail(ErrorCode::kInvalidFile,
                  "key 'general.alignment' is {}, must be a power of two from 1 to {}", value,
                  limits::kGgufAlignment);
    }
    header_.alignment = value;
    return {};
  }

  Result<void> read_tensor(std::uint64_t index) {
    const auto what = [index] { return fmt::format("tensor {}", index); };
    const std::uint64_t at = reader_.position();
    const auto name = read_string(what);
    if (!name.ok()) return name.error();
    if (name->empty()) {
      return fail(ErrorCode::kInvalidFile,
                  "damaged or incomplete: tensor {} has an empty name (offset {})", index, at);
    }
    if (name->size() > limits::kGgufTensorNameBytes) {
      return fail(ErrorCode::kInvalidFile, "tensor {} has a name of {} bytes, longer than {}",
                  index, name->size(), limits::kGgufTensorNameBytes);
    }
    if (!is_printable(*name)) {
      return fail(ErrorCode::kInvalidFile, "the name of tensor {}, '{}', is not printable UTF-8",
                  index, escape_for_message(*name));
    }
    GgufTensorInfo info;
    info.name = *name;
    TERN_TRY(read_shape(info));
    const auto type = reader_.u32();
    if (!type.ok()) return beyond(info_name(info), 4);
    const auto offset = reader_.u64();
    if (!offset.ok()) return beyond(info_name(info), 8);
    info.type_id = *type;
    info.offset = *offset;
    if (!header_.tensor_index.emplace(info.name, header_.tensors.size()).second) {
      return fail(ErrorCode::kInvalidFile, "tensor '{}' is given twice", info.name);
    }
    header_.tensors.push_back(info);
    return {};
  }
  static std::string info_name(const GgufTensorInfo& info) {
    return fmt::format("the description of tensor '{}'", info.name);
  }

  Result<void> read_shape(GgufTensorInfo& info) {
    const auto dims = reader_.u32();
    if (!dims.ok()) return beyond(info_name(info), 4);
    if (*dims < 1 || *dims > limits::kGgufDimensions) {
      return fail(ErrorCode::kInvalidFile, "tensor '{}' has {} dimensions, expected 1 to {}",
                  info.name, *dims, limits::kGgufDimensions);
    }
    info.dims = static_cast<int>(*dims);
    for (std::size_t d = 0; d < *dims; ++d) {
      const auto ne = reader_.u64();
      if (!ne.ok()) return beyond(info_name(info), 8);
      if (*ne < 1 || *ne > limits::kTensorElements) {
        return fail(ErrorCode::kInvalidFile,
                    "dimension {} of tensor '{}' is {}, expected 1 to 2^63 - 1", d, info.name, *ne);
      }
      info.ne[d] = *ne;
      const auto product = checked_mul(info.elements, *ne);
      if (!product || *product > limits::kTensorElements) {
        return fail(ErrorCode::kInvalidFile,
                    "the element count of tensor '{}' overflows (2^63 - 1 at most)", info.name);
      }
      info.elements = *product;
    }
    return {};
  }

  std::span<const std::byte> file_;
  Reader reader_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t pair_count_ = 0;
  GgufHeader header_;
};

}  // namespace

Error beyond_file(std::string_view what, std::uint64_t begin, std::uint64_t bytes,
                  std::uint64_t file_bytes) {
  const auto end = checked_add(begin, bytes);
  return fail(ErrorCode::kInvalidFile,
              "damaged or incomplete: {} needs bytes {}..{}, the file has {}", what, begin,
              end ? fmt::format("{}", *end) : "(beyond 2^64)", file_bytes);
}

std::uint64_t fixed_size(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return 0;
}

Result<GgufHeader> read_gguf_header(std::span<const std::byte> file) {
  return HeaderReader(file).read();
}

}  // namespace tern::io
