// safetensors reader: ranges cover the data exactly, and what is written from an accepted file
// reads the same.
#include <algorithm>
#include <span>

#include "io/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace tern::io;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const auto file = SafetensorsFile::read(input);
  if (!file.ok()) {
    fuzz_require(!file.error().message().empty(), "a refusal is a sentence");
    return 0;
  }
  std::size_t covered = 0;
  SafetensorsWriter writer;
  for (const auto& [key, value] : file->metadata()) writer.set_metadata(key, value);
  for (const SafetensorsTensor& tensor : file->tensors()) {
    fuzz_require(tensor.bytes.empty() ||
                     (tensor.bytes.data() >= input.data() + 8 &&
                      tensor.bytes.data() + tensor.bytes.size() <= input.data() + input.size()),
                 "a tensor lies inside the file");
    covered += tensor.bytes.size();
    writer.add(tensor.name, tensor.type, tensor.shape, tensor.bytes);
  }
  std::uint64_t header = 0;
  std::copy_n(data, sizeof header, reinterpret_cast<std::uint8_t*>(&header));
  fuzz_require(covered + header + 8 == size, "the ranges cover the data");
  const auto written = writer.to_bytes();
  const auto again = SafetensorsFile::read(written);
  fuzz_require(again.ok(), "a copy is accepted");
  fuzz_require(again->metadata() == file->metadata(), "a copy has the same metadata");
  fuzz_require(std::ranges::equal(file->tensors(), again->tensors(),
                                  [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
                                    return a.name == b.name && a.type == b.type &&
                                           a.shape == b.shape &&
                                           std::ranges::equal(a.bytes, b.bytes);
                                  }),
               "a copy reads the same");
  return 0;
}
