// The safetensors container: u64 header bytes, header (padded with spaces to 8 bytes), tensors
// without gaps.
#include "cli/safetensors_writer.h"

#include <bit>
#include <nlohmann/json.hpp>

#include "cli/utf8_text.h"

namespace tern::cli {

static_assert(std::endian::native == std::endian::little);

void write_safetensors(WrittenFile& file, std::span<const TensorToWrite> tensors,
                       std::span<const std::pair<std::string, std::string>> metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [key, value] : metadata) header["__metadata__"][key] = valid_utf8(value);
  std::uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  file.write_values(std::span(&length, 1));
  file.write(text);
  for (const TensorToWrite& tensor : tensors) file.write_values(tensor.bytes);
}

}  // namespace tern::cli
