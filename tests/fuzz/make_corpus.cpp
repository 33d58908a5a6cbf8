// Writes the seed inputs of the fuzz targets: one folder per target, one file per seed.
//
// usage: make_fuzz_corpus FOLDER
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "io/gguf_types.h"
#include "io/gguf_writer.h"
#include "io/safetensors.h"
#include "quant/format.h"
#include "tests/fixtures/make_bad_gguf.h"
#include "tests/fixtures/tiny_model.h"

namespace {

using Bytes = std::vector<std::byte>;
using namespace tern;

void save(const std::filesystem::path& folder, const std::string& name, const Bytes& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream out(folder / name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

// One pair of every value type.
Bytes all_types() {
  io::GgufWriter writer;
  writer.add_u8("u8", 200);
  writer.add_i32("i32", -1);
  writer.add_u64("u64", 1);
  writer.add_i64("i64", -5);
  writer.add_f32("f32", 0.5F);
  writer.add_f64("f64", 0.25);
  writer.add_bool("bool", true);
  writer.add_string("split.count", "no number");
  writer.add_strings("strings", std::vector<std::string>{"one", "", "three"});
  writer.add_i32s("i32s", std::vector<std::int32_t>{1, -1});
  writer.add_f32s("f32s", std::vector<float>{1.5F});
  const std::array<bool, 2> bools = {true, false};
  writer.add_bools("bools", bools);
  const Bytes nested = {std::byte{9}, {}, {}, {}, std::byte{1}, {}, {}, {}, {}, {}, {}, {},
                        std::byte{0}, {}, {}, {}, std::byte{1}, {}, {}, {}, {}, {}, {}, {},
                        std::byte{7}};
  writer.add_raw("nested", 9, nested);
  return writer.to_bytes().value();
}

// Two tensors of one type, so that a replay has offsets to look at.
Bytes two_tensors(std::uint32_t type_id, std::size_t bytes, bool pads) {
  io::GgufWriter::Options options;
  options.pads_between_tensors = pads;
  io::GgufWriter writer(options);
  const std::array<std::uint64_t, 2> ne = {256, 4};
  const Bytes data(bytes, std::byte{0x14});
  writer.add_tensor("a", ne, type_id, data);
  writer.add_tensor("b", ne, type_id, data);
  return writer.to_bytes().value();
}

void write_gguf(const std::filesystem::path& folder) {
  save(folder, "valid", fixtures::valid_gguf());
  save(folder, "types", all_types());
  for (const auto& row : fixtures::bad_ggufs()) {
    if (row.bytes.size() < 4096) save(folder, row.id, row.bytes);
  }
  for (const quant::FormatInfo& f : quant::kFormats) {
    auto model = fixtures::make_tiny_model(fixtures::TinyArchitecture::kLlama);
    std::erase_if(model.tensors, [](const auto& t) { return t.name != "blk.0.attn_norm.weight"; });
    model.remove_key("tokenizer.ggml.tokens");
    model.remove_key("tokenizer.ggml.token_type");
    // two rows of 256 weights
    auto& tensor = model.tensors.front();
    tensor.ne = {256, 2};
    tensor.bytes.assign(quant::bytes_for(f.format, 512), std::byte{0x14});
    tensor.type_id = io::type_id_of(f.format);
    save(folder, "format_" + std::string(f.tag), model.to_bytes());
  }
  save(folder, "q2_0", two_tensors(42, 288, true));
  save(folder, "q2_0_older", two_tensors(42, 272, true));
  save(folder, "q2_0_unpadded", two_tensors(42, 272, false));
  save(folder, "q1_0", two_tensors(41, 144, true));
  save(folder, "ptq1_0", two_tensors(143, 224, true));
  save(folder, "id_40", two_tensors(40, 192, true));
}

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

void write_safetensors(const std::filesystem::path& folder) {
  const Bytes data(24, std::byte{1});
  io::SafetensorsWriter writer;
  writer.set_metadata("format", "pt");
  writer.add("a", io::SafetensorsType::kF32, std::array<std::int64_t, 2>{2, 3}, data);
  writer.add("b", io::SafetensorsType::kU8, std::array<std::int64_t, 1>{24}, data);
  writer.add("c", io::SafetensorsType::kBf16, std::array<std::int64_t, 3>{0, 5, 1}, {});
  const Bytes valid = writer.to_bytes();
  save(folder, "valid", valid);
  for (const std::size_t length : {7U, 8U, 40U, 100U}) {
    Bytes cut = valid;
    cut.resize(length);
    save(folder, "cut_" + std::to_string(length), cut);
  }
  for (const std::size_t at : {0U, 8U, 10U, 30U}) {
    Bytes changed = valid;
    changed[at] = std::byte{0xff};
    save(folder, "changed_" + std::to_string(at), changed);
  }
  save(folder, "pickle", bytes_of("\x80\x02}q\x01."));
}

void write_blocks(const std::filesystem::path& folder) {
  for (std::size_t i = 0; i < quant::kFormats.size(); ++i) {
    Bytes input(1 + 2 * static_cast<std::size_t>(quant::kFormats[i].block_bytes));
    std::uint32_t state = 1;
    for (std::byte& b : input) {
      state = state * 1664525U + 1013904223U;
      b = static_cast<std::byte>(state >> 24);
    }
    input[0] = static_cast<std::byte>(i);
    save(folder, std::string(quant::kFormats[i].tag), input);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_fuzz_corpus FOLDER\n");
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    write_gguf(folder / "gguf");
    write_safetensors(folder / "safetensors");
    write_blocks(folder / "quant_blocks");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
