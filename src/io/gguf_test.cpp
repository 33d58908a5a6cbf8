// The GGUF reader on whole files: valid, damaged, ambiguous, and what the writer wrote.
#include "io/gguf.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/file_map.h"
#include "io/gguf_writer.h"
#include "quant/codec.h"
#include "tests/fixtures/make_bad_gguf.h"
#include "tests/fixtures/tiny_model.h"

namespace tern::io {
namespace {

using Bytes = std::vector<std::byte>;

std::string message_of(const Bytes& bytes, const GgufOptions& options = {}) {
  const auto file = GgufFile::read(bytes, options);
  return file.ok() ? "loads" : file.error().message();
}

// Exactly the bytes, on the heap: a read past them is found by the address sanitizer.
TEST(BadGguf, TheValidFileIsTheOneOfTheList) {
  const Bytes file = fixtures::valid_gguf();
  ASSERT_EQ(file.size(), 144U);
  const auto text = [&](std::size_t at, std::size_t size) {
    return std::string(reinterpret_cast<const char*>(file.data()) + at, size);
  };
  const auto u32 = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, file.data() + at, 4);
    return value;
  };
  const auto u64 = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, file.data() + at, 8);
    return value;
  };
  EXPECT_EQ(text(0, 4), "GGUF");
  EXPECT_EQ(u32(4), 3U);
  EXPECT_EQ(u64(8), 1U);
  EXPECT_EQ(u64(16), 1U);
  EXPECT_EQ(u64(24), 20U);
  EXPECT_EQ(text(32, 20), "general.architecture");
  EXPECT_EQ(u32(52), 8U);
  EXPECT_EQ(u64(56), 5U);
  EXPECT_EQ(text(64, 5), "qwen3");
  EXPECT_EQ(u64(69), 1U);
  EXPECT_EQ(text(77, 1), "t");
  EXPECT_EQ(u32(78), 1U);
  EXPECT_EQ(u64(82), 4U);
  EXPECT_EQ(u32(90), 0U);
  EXPECT_EQ(u64(94), 0U);
  EXPECT_EQ(text(102, 42), std::string(42, '\0'));
}

TEST(BadGguf, RowsHaveTheStatedSizes) {
  const auto rows = fixtures::bad_ggufs();
  ASSERT_EQ(rows.size(), 39U);  // 1 to 38, and 40
  std::vector<std::string> ids;
  for (const auto& row : rows) {
    ids.push_back(row.id);
    if (row.id == "RG02") {
      EXPECT_EQ(row.bytes.size(), 3U);
    }
    if (row.id == "RG06") {
      EXPECT_EQ(row.bytes.size(), 23U);
    }
    if (row.id == "RG12") {
      EXPECT_EQ(row.bytes.size(), 112U);
    }
    if (row.id == "RG40") {
      EXPECT_EQ(row.bytes.size(), 144U + 1048576U);
    }
  }
  EXPECT_EQ(ids.front(), "RG01");
  EXPECT_EQ(ids[37], "RG38");
  EXPECT_EQ(ids.back(), "RG40");
}

TEST(BadGguf, EveryRowIsAnsweredInOneSecondWithItsSentence) {
  for (const auto& row : fixtures::bad_ggufs()) {
    const auto start = std::chrono::steady_clock::now();
    const auto file = GgufFile::read(row.bytes);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_LT(seconds.count(), 1.0) << row.id;
    ASSERT_EQ(file.ok(), row.loads) << row.id;
    std::string text = row.loads ? "" : file.error().message();
    if (row.loads) {
      ASSERT_EQ(file->notes().size(), 1U) << row.id;
      text = file->notes()[0];
    }
    for (const std::string& part : row.expected) {
      EXPECT_NE(text.find(part), std::string::npos) << row.id << ": " << text << "\nlacks " << part;
    }
  }
}

TEST(BadGguf, EveryCutFileIsRefused) {
  const auto files = fixtures::cut_ggufs();
  ASSERT_EQ(files.size(), 144U);
  for (const Bytes& file : files) {
    EXPECT_NE(message_of(file), "loads") << file.size();
  }
  EXPECT_EQ(message_of(fixtures::valid_gguf()), "loads");
}

TEST(GgufReader, ReadsTheValidFile) {
  const Bytes bytes = fixtures::valid_gguf();
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->version(), 3U);
  EXPECT_EQ(file->alignment(), 32U);
  EXPECT_EQ(file->data_offset(), 128U);
  EXPECT_TRUE(file->notes().empty());
  EXPECT_EQ(*file->get_string("general.architecture"), "qwen3");
  ASSERT_EQ(file->tensors().size(), 1U);
  const GgufTensor& tensor = file->tensors()[0];
  EXPECT_EQ(tensor.name, "t");
  EXPECT_EQ(tensor.format, quant::Format::kF32);
  EXPECT_EQ(tensor.type_name, "F32");
  EXPECT_EQ(tensor.shape_text(), "[4]");
  EXPECT_EQ(tensor.file_offset, 128U);
  EXPECT_EQ(tensor.bytes.size(), 16U);
  EXPECT_EQ(file->find_tensor("u"), nullptr);
}

Bytes with_version(Bytes bytes, std::byte version) {
  bytes[4] = version;
  return bytes;
}

TEST(GgufReader, ReadsVersionTwo) {
  const auto file = GgufFile::read(with_version(fixtures::valid_gguf(), std::byte{2}));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->version(), 2U);
}

TEST(GgufReader, AFileWithoutTensorsNeedsNoPadding) {
  GgufWriter writer;
  writer.add_string("general.architecture", "qwen3");
  Bytes bytes = writer.to_bytes().value();
  ASSERT_EQ(bytes.size(), 96U);
  bytes.resize(69);
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->notes().empty());
}

TEST(GgufReader, NestedArraysAreWalkedToFourLevels) {
  const auto nested = [](int levels) {
    Bytes payload;
    const auto put32 = [&](std::uint32_t v) {
      for (int i = 0; i < 4; ++i) payload.push_back(static_cast<std::byte>(v >> (8 * i) & 255));
    };
    for (int i = 0; i < levels; ++i) {
      put32(i + 1 < levels ? 9 : 0);
      put32(1);
      put32(0);
    }
    payload.push_back(std::byte{42});
    GgufWriter writer;
    writer.add_raw("a", 9, payload);
    writer.add_u32("after", 5);
    return writer.to_bytes().value();
  };
  const Bytes four = nested(4);
  const auto file = GgufFile::read(four);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->get_u32("after"), 5U);
  EXPECT_EQ(message_of(nested(5)), "key 'a' nests arrays more than 4 deep");
}

TEST(GgufReader, LimitsAreRefusalsWithTheNumber) {
  GgufWriter many;
  for (int i = 0; i < 65537; ++i) many.add_u8(fmt::format("k{}", i), 0);
  EXPECT_EQ(message_of(many.to_bytes().value()),
            "the file has 65537 keys, at most 65536 are allowed");
  GgufWriter tensors;
  const std::array<std::uint64_t, 1> one = {1};
  const Bytes data(4);
  tensors.add_tensor(std::string(256, 'x'), one, 0, data);
  EXPECT_EQ(message_of(tensors.to_bytes().value()),
            "tensor 0 has a name of 256 bytes, longer than 255");
}

TEST(GgufReader, ReadsWhatTheWriterWrote) {
  for (const std::uint64_t alignment : {1U, 32U, 64U, 65536U}) {
    const Bytes data_a(20, std::byte{1});
    const Bytes data_b(8, std::byte{2});
    GgufWriter::Options options;
    options.alignment = alignment;
    GgufWriter writer(options);
    writer.add_string("general.architecture", "llama");
    const std::array<std::uint64_t, 2> ne_a = {5, 1};
    const std::array<std::uint64_t, 4> ne_b = {1, 2, 2, 1};
    writer.add_tensor("a", ne_a, quant::Format::kF32, data_a);
    writer.add_tensor("b", ne_b, quant::Format::kF16, data_b);
    const Bytes bytes = writer.to_bytes().value();
    EXPECT_EQ(bytes.size(), writer.file_bytes());
    const auto file = GgufFile::read(bytes);
    ASSERT_TRUE(file.ok()) << file.error().message();
    EXPECT_EQ(file->alignment(), alignment);
    EXPECT_TRUE(file->notes().empty());
    ASSERT_EQ(file->tensors().size(), 2U);
    EXPECT_EQ(file->tensors()[1].ne, ne_b);
    EXPECT_EQ(file->tensors()[1].dims, 4);
    EXPECT_EQ(file->tensors()[0].offset, 0U);
    EXPECT_EQ(file->tensors()[1].offset, (20 + alignment - 1) / alignment * alignment);
    EXPECT_TRUE(std::ranges::equal(file->tensors()[0].bytes, data_a));
    EXPECT_TRUE(std::ranges::equal(file->tensors()[1].bytes, data_b));

    // read, write again, same bytes
    GgufWriter::Options again_options;
    GgufWriter again(again_options);
    Bytes copy;
    if (alignment == 32) {
      for (const GgufPair& pair : file->pairs()) again.add_pair(pair);
      for (const GgufTensor& t : file->tensors()) {
        again.add_tensor(t.name, std::span(t.ne).first(static_cast<std::size_t>(t.dims)), t.type_id,
                         t.bytes);
      }
      EXPECT_EQ(again.to_bytes().value(), bytes);
    }
  }
}

TEST(GgufReader, EveryKeyAndTensorSurvivesACopy) {
  const Bytes bytes = fixtures::make_tiny_model(fixtures::TinyArchitecture::kQwen3).to_bytes();
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  GgufWriter writer;
  for (const GgufPair& pair : file->pairs()) writer.add_pair(pair);
  for (const GgufTensor& t : file->tensors()) {
    writer.add_tensor(t.name, std::span(t.ne).first(static_cast<std::size_t>(t.dims)), t.type_id,
                      t.bytes);
  }
  EXPECT_EQ(writer.to_bytes().value(), bytes);
}

TEST(GgufWriter, RefusesASourceOfAnotherSize) {
  GgufWriter writer;
  const std::array<std::uint64_t, 1> ne = {2};
  writer.add_tensor("t", ne, 0, 8, [](const ByteSink& sink) {
    const Bytes four(4);
    return sink(four);
  });
  EXPECT_EQ(writer.to_bytes().error().message(), "tensor 't' was announced with 8 bytes and has 4");
}

TEST(GgufReader, PartsOfASplitModelAreNamed) {
  const auto split = [](std::uint32_t number, std::uint32_t count) {
    GgufWriter writer;
    writer.add_u32("split.no", number);
    writer.add_u32("split.count", count);
    const Bytes bytes = writer.to_bytes().value();
    const auto file = GgufFile::read(bytes);
    const auto result = refuse_split(*file);
    return result.ok() ? std::string("whole") : result.error().message();
  };
  EXPECT_EQ(split(0, 1), "whole");
  EXPECT_NE(split(0, 2).find("part 1 of 2 of a split model"), std::string::npos);
  EXPECT_EQ(split(5, 2), "key 'split.no' is 5, but 'split.count' is 2");
  EXPECT_EQ(split(0, 0), "whole");
}

// Real files: the golden models, made with another writer.
TEST(GgufReader, ReadsTheGoldenModels) {
  struct Case {
    const char* name;
    const char* architecture;
    std::uint64_t layers;
    quant::Format format;  // of the output of the feed-forward network
  };
  const Case cases[] = {{"llama-rope3", "llama", 2, quant::Format::kF16},
                        {"llama-smol", "llama", 1, quant::Format::kF16},
                        {"qwen3-tied", "qwen3", 2, quant::Format::kF16},
                        {"qwen3-yarn", "qwen3", 2, quant::Format::kF16},
                        {"qwen3-pq2_0", "qwen3", 2, quant::Format::kT2G128},
                        {"qwen3-q2_0", "qwen3", 2, quant::Format::kT2G64},
                        {"qwen3-q1_0", "qwen3", 1, quant::Format::kQ1G128}};
  for (const Case& c : cases) {
    auto map =
        FileMap::open(std::string(TERN_SOURCE_DIR "/tests/golden/lm/") + c.name + "/model.gguf");
    ASSERT_TRUE(map.ok()) << map.error().message();
    const auto file = GgufFile::open(std::make_shared<const FileMap>(std::move(*map)));
    ASSERT_TRUE(file.ok()) << c.name << ": " << file.error().message();
    const std::string architecture(*file->get_string("general.architecture"));
    EXPECT_EQ(architecture, c.architecture);
    EXPECT_EQ(*file->get_u64(architecture + ".block_count"), c.layers);
    EXPECT_EQ(file->get_strings("tokenizer.ggml.tokens")->size(), 320U);
    EXPECT_EQ(file->find_tensor("blk.0.ffn_down.weight")->format, c.format) << c.name;
    EXPECT_TRUE(file->notes().empty()) << c.name << ": " << file->notes()[0];
  }
}

// Every value of the type field, on every tensor of a model: read, or refused with a sentence that
// names the tensor.
TEST(GgufReader, EveryTypeIdIsReadOrRefusedByName) {
  const fixtures::TinyModel model =
      fixtures::make_tiny_model(fixtures::TinyArchitecture::kQwen3, quant::Format::kF16);
  for (const char* name : {"token_embd.weight", "blk.0.ffn_norm.weight", "output_norm.weight"}) {
    for (std::uint32_t id = 0; id < 256; ++id) {
      fixtures::TinyModel changed = model;
      changed.tensor(name).type_id = id;
      const std::string message = message_of(changed.to_bytes());
      if (message == "loads" || message.find("type 42 could be") == 0) continue;
      EXPECT_NE(message.find("tensor"), std::string::npos) << id << ": " << message;
    }
  }
}

TEST(GgufReader, ARowThatIsNoMultipleOfTheBlockIsRefused) {
  GgufWriter writer;
  const std::array<std::uint64_t, 2> ne = {48, 2};
  const Bytes data(54);
  writer.add_tensor("w", ne, quant::Format::kQ4_0, data);
  EXPECT_EQ(message_of(writer.to_bytes().value()),
            "tensor 'w' has rows of 48, type Q4_0 needs a multiple of 32");
}

}  // namespace
}  // namespace tern::io
