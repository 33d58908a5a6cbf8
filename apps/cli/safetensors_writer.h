// Writes a safetensors file: header length, JSON header, data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/written_file.h"

namespace tern::cli {

struct TensorToWrite {
  std::string name;
  std::string dtype;  // "F32", "I32"
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// Metadata are strings, in the given order. Everything is little endian, as the machines are that
// Tern runs on.
void write_safetensors(WrittenFile& file, std::span<const TensorToWrite> tensors,
                       std::span<const std::pair<std::string, std::string>> metadata);

}  // namespace tern::cli
