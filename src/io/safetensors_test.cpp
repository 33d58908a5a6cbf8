// The strict safetensors reader on valid, damaged and golden files, and the writer.
#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file_map.h"

namespace tern::io {
namespace {

using Bytes = std::vector<std::byte>;

// Length, header (padded with spaces to a multiple of 8) and zeros.
Bytes file_of(std::string header, std::size_t data_bytes) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  Bytes bytes(8 + header.size() + data_bytes);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}
Bytes valid() { return file_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 16); }
Bytes changed(std::size_t at, const std::string& text) {
  Bytes bytes = valid();
  std::memcpy(bytes.data() + at, text.data(), text.size());
  return bytes;
}
std::string message_of(const Bytes& bytes) {
  const auto file = SafetensorsFile::read(bytes);
  return file.ok() ? "loads" : file.error().message();
}

TEST(Safetensors, ReadsTheValidFile) {
  const Bytes bytes = valid();
  ASSERT_EQ(bytes.size(), 80U);
  const auto file = SafetensorsFile::read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  ASSERT_EQ(file->tensors().size(), 1U);
  const SafetensorsTensor& tensor = *file->find("a");
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{4}));
  EXPECT_EQ(tensor.file_offset, 64U);
  EXPECT_EQ(tensor.bytes.size(), 16U);
  EXPECT_EQ(tensor.elements(), 4);
  EXPECT_EQ(tensor.format(), quant::Format::kF32);
  EXPECT_EQ(file->find("b"), nullptr);
}

struct Row {
  const char* id;
  Bytes bytes;
  std::string expected;  // part of the sentence
};

std::vector<Row> container_rows() {
  return {
      {"RS01", Bytes(7), "has at least 8 bytes, this one 7"},
      {"RS02", changed(0, "\xff\xff\xff\xff\xff\xff\xff\x7f"),
       "the header needs 9223372036854775807 bytes after the first 8, the file has 80"},
      {"RS04", changed(0, "\x36"), "the header is not valid JSON (offset 62)"},
      {"RS05", changed(8, " "), "the header must start with '{' (offset 8)"},
      {"RS06", changed(10, "\xff"), "the header is not valid UTF-8 (offset 10)"},
      {"RS07", changed(23, "F64"), "tensor 'a': shape [4] of F64 needs 32 bytes, its range has 16"},
      {"RS08", file_of(R"({"a":{"dtype":"Q9","shape":[4],"data_offsets":[0,16]}})", 16),
       "tensor 'a' has dtype 'Q9', which Tern does not know"},
      {"RS08 range", file_of(R"({"a":{"dtype":"Q9","shape":[4],"data_offsets":[0,17]}})", 16),
       "damaged or incomplete: tensor 'a' needs bytes 64..81, the file has 80"},
      {"RS09",
       file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
       "the element count of tensor 'a' overflows"},
      {"RS09 with a zero",
       file_of(R"({"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})",
               0),
       "the element count of tensor 'a' overflows"},
      {"RS10", file_of(R"({"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})", 16),
       "field 'shape' of tensor 'a' is or holds number -4, expected whole numbers from 0"},
      {"RS12", file_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}})", 16),
       "tensor 'a' has data_offsets 16..0, begin after end"},
      {"RS13", file_of(R"({"a":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}})", 16),
       "damaged or incomplete: tensor 'a' needs bytes 64..84, the file has 80"},
      {"RS14",
       file_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
               R"("b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}})",
               24),
       "tensors 'a' and 'b' overlap"},
      {"RS15",
       file_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
               R"("a":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}})",
               32),
       "tensor 'a' is given twice"},
      {"RS16 number", file_of(R"({"__metadata__":{"x":1}})", 0),
       "__metadata__ 'x' is number 1, values must be strings"},
      {"RS16 object", file_of(R"({"__metadata__":{"x":{}}})", 0),
       "__metadata__ 'x' is an object, values must be strings"},
      {"RS17 zip", changed(0, "PK\x03\x04"), "not a model file Tern knows (first bytes 504b0304"},
      {"RS17 pickle", changed(0, "\x80\x02}q"),
       "not a model file Tern knows (first bytes 80027d71"},
  };
}

std::vector<Row> header_rows() {
  std::string ones = "1";
  for (int i = 1; i < 1000000; ++i) ones += ",1";
  return {
      {"RS11",
       file_of(R"({"a":{"dtype":"F32","shape":[)" + ones + R"(],"data_offsets":[0,4]}})", 4),
       "tensor 'a' has more than 8 dimensions"},
      {"trailing bytes", file_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 17),
       "1 bytes after the last tensor (offset 80), the ranges must cover the data"},
      {"hole",
       file_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
               R"("b":{"dtype":"U8","shape":[4],"data_offsets":[20,24]}})",
               24),
       "belong to no tensor"},
      {"not an object", file_of("{\"a\":5}", 0), "'a' is number 5, expected an object"},
      {"array", file_of("[]", 0), "the header must start with '{'"},
      {"no dtype", file_of(R"({"a":{"shape":[4],"data_offsets":[0,16]}})", 16),
       "tensor 'a' has no field 'dtype'"},
      {"no shape", file_of(R"({"a":{"dtype":"F32","data_offsets":[0,16]}})", 16),
       "tensor 'a' has no field 'shape'"},
      {"no offsets", file_of(R"({"a":{"dtype":"F32","shape":[4]}})", 16),
       "tensor 'a' has no field 'data_offsets'"},
      {"one offset", file_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0]}})", 16),
       "tensor 'a' has 1 data_offsets, expected 2"},
      {"three offsets",
       file_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16,16]}})", 16),
       "tensor 'a' has more than two data_offsets"},
      {"field twice",
       file_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 16),
       "field 'dtype' of tensor 'a' is given twice"},
      {"other field", file_of(R"({"a":{"dtype":"F32","strides":[4]}})", 16),
       "tensor 'a' has a field 'strides'"},
      {"fraction", file_of(R"({"a":{"dtype":"F32","shape":[4.5],"data_offsets":[0,16]}})", 16),
       "field 'shape' of tensor 'a' is or holds number 4.5"},
      {"nested", file_of(R"({"a":{"dtype":"F32","shape":[[4]],"data_offsets":[0,16]}})", 16),
       "field 'shape' of tensor 'a' is or holds an array"},
      {"deep", file_of(R"({"a":)" + std::string(100000, '['), 0), "'a' is an array"},
      {"two values", file_of(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}} {})", 1),
       "the header is not valid JSON"},
  };
}

TEST(Safetensors, EveryDamagedFileIsRefusedInOneSecondWithItsSentence) {
  for (const auto& rows : {container_rows(), header_rows()}) {
    for (const Row& row : rows) {
      const auto start = std::chrono::steady_clock::now();
      const std::string message = message_of(row.bytes);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      EXPECT_LT(seconds.count(), 1.0) << row.id;
      EXPECT_NE(message.find(row.expected), std::string::npos) << row.id << ": " << message;
    }
  }
}

TEST(Safetensors, EveryCutFileIsRefused) {
  for (std::size_t length = 0; length < 80; ++length) {
    Bytes bytes = valid();
    bytes.resize(length);
    EXPECT_NE(message_of(bytes), "loads") << length;
  }
}

TEST(Safetensors, AHeaderBeyondTheCapIsRefusedBeforeItIsRead) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "tern_big_header.safetensors";
  {
    std::ofstream out(path, std::ios::binary);
    const std::uint64_t length = 100000001;
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
  }
  std::filesystem::resize_file(path, 100000001 + 8);  // sparse
  auto map = FileMap::open(path);
  ASSERT_TRUE(map.ok()) << map.error().message();
  const auto file = SafetensorsFile::read(map->bytes());
  std::filesystem::remove(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().message(),
            "the header has 100000001 bytes, at most 100000000 are allowed");
}

TEST(Safetensors, ReadsWhatTheWriterWrote) {
  const std::vector<float> logits = {1.5F, -2.0F, 0.25F, 3.0F, 4.0F, -0.5F};
  const std::vector<std::int32_t> ids = {1, -2, 300000};
  SafetensorsWriter writer;
  writer.set_metadata("model", "a \"quoted\" name, \xc3\xa4");
  writer.set_metadata("device", "cpu");
  writer.add_f32("logits", std::array<std::int64_t, 2>{2, 3}, logits);
  writer.add_i32("input_ids", std::array<std::int64_t, 1>{3}, ids);
  writer.add("nothing", SafetensorsType::kF16, std::array<std::int64_t, 2>{0, 7}, {});
  writer.add_f32("scalar", {}, std::span(logits).first(1));
  const Bytes bytes = writer.to_bytes();
  const auto file = SafetensorsFile::read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  ASSERT_EQ(file->tensors().size(), 4U);
  EXPECT_EQ(file->tensors()[0].name, "logits");
  EXPECT_EQ(file->find("logits")->values<float>(), logits);
  EXPECT_EQ(file->find("logits")->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(file->find("logits")->shape_text(), "[2, 3]");
  EXPECT_EQ(file->find("logits")->file_offset % 8, 0U);
  EXPECT_EQ(file->find("input_ids")->values<std::int32_t>(), ids);
  EXPECT_EQ(file->find("input_ids")->format(), std::nullopt);
  EXPECT_EQ(file->find("nothing")->elements(), 0);
  EXPECT_TRUE(file->find("scalar")->shape.empty());
  EXPECT_EQ(file->metadata().at("model"), "a \"quoted\" name, \xc3\xa4");
  EXPECT_EQ(file->metadata().size(), 2U);
}

TEST(Safetensors, WritesTheDocumentedBytes) {
  const std::vector<float> values = {1.0F};
  SafetensorsWriter writer;
  writer.add_f32("a", std::array<std::int64_t, 1>{1}, values);
  const Bytes bytes = writer.to_bytes();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(text, std::string("\x38\0\0\0\0\0\0\0", 8) +
                      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  )" +
                      std::string("\0\0\x80\x3f", 4));
}

TEST(Safetensors, WritesAFileUnderItsNameOnlyWhenComplete) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "tern_writer.safetensors";
  std::filesystem::remove(path);
  const std::vector<float> values = {1.0F, 2.0F};
  SafetensorsWriter writer;
  writer.add_f32("a", std::array<std::int64_t, 1>{2}, values);
  ASSERT_TRUE(writer.write(path).ok());
  EXPECT_FALSE(writer.write(path).ok());
  EXPECT_TRUE(writer.write(path, true).ok());
  auto map = FileMap::open(path);
  ASSERT_TRUE(map.ok());
  const auto file = SafetensorsFile::open(std::make_shared<const FileMap>(std::move(*map)));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->find("a")->values<float>(), values);
  std::filesystem::remove(path);
}

TEST(Safetensors, ReadsTheGoldenFile) {
  auto map = FileMap::open(TERN_SOURCE_DIR "/tests/golden/lm/qwen3-tied/golden.safetensors");
  ASSERT_TRUE(map.ok()) << map.error().message();
  const auto file = SafetensorsFile::read(map->bytes());
  ASSERT_TRUE(file.ok()) << file.error().message();
  ASSERT_NE(file->find("logits"), nullptr);
  EXPECT_EQ(file->find("logits")->shape.size(), 2U);
  EXPECT_EQ(file->find("logits")->shape[1], 320);
  EXPECT_EQ(file->find("input_ids")->type, SafetensorsType::kI32);
  EXPECT_EQ(file->find("input_ids")->shape[0], file->find("logits")->shape[0]);
}

}  // namespace
}  // namespace tern::io
