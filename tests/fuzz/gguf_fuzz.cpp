// GGUF reader: ranges lie inside the input, every value can be asked for and printed, and a copy
// reads the same.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "io/gguf.h"
#include "io/gguf_writer.h"
#include "tests/fuzz/fuzz.h"

using namespace tern::io;

namespace {

GgufWriter copy_of(const GgufFile& file) {
  GgufWriter writer;
  for (const GgufPair& pair : file.pairs()) {
    if (pair.key != "general.alignment") writer.add_pair(pair);
  }
  for (const GgufTensor& t : file.tensors()) {
    writer.add_tensor(t.name, std::span(t.ne).first(static_cast<std::size_t>(t.dims)), t.type_id,
                      t.bytes);
  }
  return writer;
}

void ask_everything(const GgufFile& file) {
  for (const GgufPair& pair : file.pairs()) {
    (void)file.get_u64(pair.key);
    (void)file.get_i64(pair.key);
    (void)file.get_f32(pair.key);
    (void)file.get_bool(pair.key);
    (void)file.get_string(pair.key);
    (void)file.get_ints(pair.key);
    (void)file.get_floats(pair.key);
    if (const auto strings = file.get_strings(pair.key); strings.ok()) {
      fuzz_require(strings->to_vector().size() == pair.count, "as many strings as announced");
    }
    fuzz_require(pair.value_text().size() < 1000, "a printed value is short");
  }
  (void)refuse_split(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const auto file = GgufFile::read(input);
  if (!file.ok()) {
    fuzz_require(!file.error().message().empty(), "a refusal is a sentence");
    return 0;
  }
  ask_everything(*file);
  for (const GgufTensor& tensor : file->tensors()) {
    fuzz_require(tensor.bytes.data() >= input.data() &&
                     tensor.bytes.data() + tensor.bytes.size() <= input.data() + input.size(),
                 "a tensor lies inside the file");
    const auto row = static_cast<std::uint64_t>(tern::quant::info(tensor.format).group);
    fuzz_require(tensor.row_elements() % row == 0, "a row is whole blocks");
    fuzz_require(tensor.bytes.size() == tern::quant::bytes_for(tensor.format, tensor.elements()),
                 "bytes follow from shape and format");
  }
  const auto written = copy_of(*file).to_bytes();
  const auto again = GgufFile::read(*written, {"q2_0-g64"});
  const auto older = GgufFile::read(*written, {"q2_0-g128"});
  const auto same = [&](const auto& other) {
    return other.ok() &&
           std::ranges::equal(file->tensors(), other->tensors(), [](auto& a, auto& b) {
             return a.name == b.name && a.ne == b.ne && a.format == b.format &&
                    std::ranges::equal(a.bytes, b.bytes);
           });
  };
  fuzz_require(same(again) || same(older), "a copy reads the same");
  return 0;
}

// Half of the time a pair of a valid file changes its value while lengths and offsets stay
// consistent.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  const auto file = GgufFile::read(std::as_bytes(std::span(data, size)));
  if (seed % 2 == 0 || !file.ok() || file->pairs().empty()) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  GgufWriter writer;
  const std::size_t chosen = seed / 2 % file->pairs().size();
  for (std::size_t i = 0; i < file->pairs().size(); ++i) {
    const GgufPair& pair = file->pairs()[i];
    if (i != chosen) {
      writer.add_pair(pair);
      continue;
    }
    std::vector<std::uint8_t> value(pair.bytes.size() + 64);
    std::memcpy(value.data(), pair.bytes.data(), pair.bytes.size());
    value.resize(LLVMFuzzerMutate(value.data(), pair.bytes.size(), value.size()));
    writer.add_string(pair.key, {reinterpret_cast<const char*>(value.data()), value.size()});
  }
  for (const GgufTensor& t : file->tensors()) {
    writer.add_tensor(t.name, std::span(t.ne).first(static_cast<std::size_t>(t.dims)), t.type_id,
                      t.bytes);
  }
  const auto bytes = writer.to_bytes();
  if (bytes->size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, bytes->data(), bytes->size());
  return bytes->size();
}
