// Both containers through one door: what is in them, and what the door says when it is neither.
#include "io/weights.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tern::io {
namespace {

const std::string kGolden = TERN_SOURCE_DIR "/tests/golden/lm/";

TEST(WeightFile, GgufAndSafetensorsOfOneModelHaveTheSameEmbedding) {
  const auto gguf = WeightFile::open(kGolden + "qwen3-tied/model.gguf");
  ASSERT_TRUE(gguf.ok()) << gguf.error().message();
  const auto safetensors = WeightFile::open(kGolden + "qwen3-tied/hf/model.safetensors");
  ASSERT_TRUE(safetensors.ok()) << safetensors.error().message();
  EXPECT_NE(gguf->gguf(), nullptr);
  EXPECT_EQ(gguf->safetensors(), nullptr);
  EXPECT_EQ(safetensors->gguf(), nullptr);
  EXPECT_NE(safetensors->safetensors(), nullptr);
  const WeightTensor* a = gguf->find("token_embd.weight");
  const WeightTensor* b = safetensors->find("model.embed_tokens.weight");
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(a->shape, (std::vector<std::int64_t>{320, 64}));
  EXPECT_EQ(b->shape, a->shape);
  EXPECT_EQ(a->format, quant::Format::kF16);
  EXPECT_EQ(b->format, quant::Format::kF16);
  EXPECT_TRUE(std::ranges::equal(a->bytes, b->bytes));
  EXPECT_EQ(a->elements(), 320 * 64);
  EXPECT_EQ(gguf->find("no such tensor"), nullptr);
}

// Writes a file, opens it, and gives the message without the folder.
std::string message_for(const std::string& content) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "tern_weights.bin";
  std::ofstream(path, std::ios::binary) << content;
  const auto weights = WeightFile::open(path);
  std::filesystem::remove(path);
  if (weights.ok()) return "loads";
  const std::string message = weights.error().message();
  EXPECT_EQ(message.find(path.string() + ": "), 0U) << message;
  return message.substr(path.string().size() + 2);
}

TEST(WeightFile, OtherFilesAreRefusedByTheirFirstBytes) {
  EXPECT_EQ(message_for("PK\x03\x04 and so on, an archive"),
            "not a model file Tern knows (first bytes 504b0304)");
  EXPECT_EQ(message_for("GG"),
            "not a model file Tern knows (first bytes 4747; the file has 2 bytes)");
  EXPECT_EQ(message_for("# README\nwhat this is"),
            "not a model file Tern knows (first bytes 23205245)");
}

TEST(WeightFile, AMissingFileIsNotFound) {
  const auto weights = WeightFile::open(kGolden + "no-such-file.gguf");
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.error().code(), ErrorCode::kNotFound);
  EXPECT_NE(weights.error().message().find("no-such-file.gguf"), std::string::npos);
}

}  // namespace
}  // namespace tern::io
