// The header of a GGUF file: key-value pairs and tensor infos, checked against the bytes that are
// there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/gguf.h"

namespace tern::io {

// A tensor as the file declares it; neither type nor place are checked yet.
struct GgufTensorInfo {
  std::string_view name;
  int dims = 1;
  std::array<std::uint64_t, 4> ne = {1, 1, 1, 1};
  std::uint64_t elements = 1;  // below 2^63
  std::uint32_t type_id = 0;
  std::uint64_t offset = 0;
};

struct GgufHeader {
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::uint64_t end = 0;  // of the tensor infos
  std::uint64_t data_offset =
      0;  // end rounded up to the alignment; may lie beyond a file without tensors
  std::vector<GgufPair> pairs;
  std::vector<GgufTensorInfo> tensors;
  std::map<std::string_view, std::size_t> pair_index;
  std::map<std::string_view, std::size_t> tensor_index;
};

[[nodiscard]] Result<GgufHeader> read_gguf_header(std::span<const std::byte> file);

// "damaged or incomplete: tensor 't' needs bytes 128..144, the file has 100"
[[nodiscard]] Error beyond_file(std::string_view what, std::uint64_t begin, std::uint64_t bytes,
                                std::uint64_t file_bytes);

// Bytes of one element of a type of fixed size, else 0.
[[nodiscard]] std::uint64_t fixed_size(GgufType type);

}  // namespace tern::io
