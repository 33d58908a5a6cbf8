// Random models are read back: shapes, formats, sizes of the weights, and the same bytes for the
// same seed.
#include "random_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "quant/codec.h"

namespace tern::tools {
namespace {

std::vector<std::byte> made(std::string_view shape, quant::Format format, std::uint64_t seed = 1) {
  RandomModel model;
  model.shape = find_shape(shape);
  model.format = format;
  model.seed = seed;
  const auto writer = make_random_model(model);
  return writer->to_bytes().value();
}

TEST(RandomModel, EveryFormatIsReadBackWithWeightsOfARealisticSize) {
  for (const quant::FormatInfo& f : quant::kFormats) {
    const auto bytes = made("qwen3-tiny", f.format);
    const auto file = io::GgufFile::read(bytes);
    ASSERT_TRUE(file.ok()) << f.tag << ": " << file.error().message();
    EXPECT_TRUE(file->notes().empty()) << f.tag;
    const io::GgufTensor& down = *file->find_tensor("blk.1.ffn_down.weight");
    ASSERT_EQ(down.format, f.format) << f.tag;
    EXPECT_EQ(down.shape_text(), "[512, 256]");
    EXPECT_FALSE(quant::first_bad_scale(f.format, down.bytes).has_value()) << f.tag;
    std::vector<float> weights(down.elements());
    quant::decode_row(f.format, down.bytes.data(), static_cast<std::int64_t>(weights.size()),
                      weights.data());
    double sum = 0;
    double squares = 0;
    for (const float w : weights) {
      sum += w;
      squares += static_cast<double>(w) * w;
    }
    const double count = static_cast<double>(weights.size());
    // scales vary by a factor of 0.5 to 1.5, which adds 4 % to the deviation
    EXPECT_NEAR(std::sqrt(squares / count) * std::sqrt(512.0), 1.04, 0.06) << f.tag;
    EXPECT_NEAR(sum / count * std::sqrt(512.0), 0.0, 0.02) << f.tag;
  }
}

TEST(RandomModel, TernaryFormatsUseTheirThreeCodesAboutEqually) {
  for (const quant::Format format :
       {quant::Format::kT2G64, quant::Format::kT2G128, quant::Format::kT1G128,
        quant::Format::kT1G256, quant::Format::kT2G256}) {
    const auto bytes = made("qwen3-tiny", format);
    const auto file = io::GgufFile::read(bytes);
    ASSERT_TRUE(file.ok());
    const io::GgufTensor& up = *file->find_tensor("blk.0.ffn_up.weight");
    std::vector<std::int8_t> codes(up.elements());
    std::vector<std::uint16_t> scales(up.elements());
    quant::decode_codes_row(format, up.bytes.data(), static_cast<std::int64_t>(codes.size()),
                            codes.data(), scales.data());
    for (const int code : {-1, 0, 1}) {
      const auto share =
          static_cast<double>(std::ranges::count(codes, code)) / static_cast<double>(codes.size());
      EXPECT_NEAR(share, 1.0 / 3.0, 0.01) << quant::info(format).tag << " code " << code;
    }
    EXPECT_EQ(std::ranges::count(codes, 2), 0);
  }
}

TEST(RandomModel, TheSameSeedGivesTheSameBytesAndAnotherSeedOthers) {
  EXPECT_EQ(made("llama-tiny", quant::Format::kQ1G128, 7),
            made("llama-tiny", quant::Format::kQ1G128, 7));
  EXPECT_NE(made("llama-tiny", quant::Format::kQ1G128, 7),
            made("llama-tiny", quant::Format::kQ1G128, 8));
}

TEST(RandomModel, TheShapeOfARealModelHasItsTensorsAndBytes) {
  RandomModel model;
  model.shape = find_shape("qwen3-1.7b");
  model.format = quant::Format::kQ1G128;
  const auto writer = make_random_model(model);
  ASSERT_TRUE(writer.ok());
  // 242,357,152 bytes of tensor data, as the published model, and a header with 151,669 tokens
  const std::uint64_t data = writer->file_bytes() - writer->header().size();
  EXPECT_EQ(data, 242357152U);
}

TEST(RandomModel, TheMadeUpVocabularyHasDifferentTokensAndAMergeForEach) {
  RandomModel model;
  model.shape = find_shape("qwen3-0.6b");
  model.format = quant::Format::kQ1G128;
  const auto writer = make_random_model(model);
  const auto header = writer->header();
  auto bytes = header;
  bytes.resize(static_cast<std::size_t>(writer->file_bytes()));
  const auto file = io::GgufFile::read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  const auto tokens = file->get_strings("tokenizer.ggml.tokens")->to_vector();
  EXPECT_EQ(tokens.size(), 151669U);
  EXPECT_EQ(std::set<std::string_view>(tokens.begin(), tokens.end()).size(), tokens.size());
  EXPECT_EQ(tokens[151643], "<|endoftext|>");
  EXPECT_EQ(tokens[151668], "</think>");
  EXPECT_EQ(*file->get_u32("tokenizer.ggml.eos_token_id"), 151645U);
  const auto merges = file->get_strings("tokenizer.ggml.merges")->to_vector();
  ASSERT_EQ(merges.size(), 151643U - 256U);
  for (const std::size_t i :
       {std::size_t{0}, std::size_t{65535}, std::size_t{65536}, merges.size() - 1}) {
    std::string joined(merges[i]);
    joined.erase(joined.find(' '), 1);
    EXPECT_EQ(joined, tokens[256 + i]) << i;
  }
}

TEST(RandomModel, AVocabularyFileDecidesTheRows) {
  io::GgufWriter vocabulary;
  vocabulary.add_string("general.architecture", "qwen3");
  vocabulary.add_string("tokenizer.ggml.pre", "qwen2");
  vocabulary.add_strings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
  const auto vocabulary_bytes = vocabulary.to_bytes().value();
  const auto vocabulary_file = io::GgufFile::read(vocabulary_bytes);
  RandomModel model;
  model.shape = find_shape("llama-tiny");
  model.vocabulary = &*vocabulary_file;
  const auto bytes = make_random_model(model)->to_bytes().value();
  const auto file = io::GgufFile::read(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->find_tensor("token_embd.weight")->rows(), 3U);
  EXPECT_EQ(file->find_tensor("output.weight")->rows(), 3U);
  EXPECT_EQ(*file->get_string("general.architecture"), "llama");
  EXPECT_EQ(*file->get_string("tokenizer.ggml.pre"), "qwen2");
}

TEST(RandomModel, ATypeThatDoesNotDivideTheWidthIsRefused) {
  RandomModel model;
  model.shape = find_shape("llama-smollm2-135m");
  model.format = quant::Format::kQ1G128;
  EXPECT_EQ(make_random_model(model).error().message(),
            "tensor 'token_embd.weight' has rows of 576, type Q1_0 needs a multiple of 128; choose "
            "another type");
  model.format = quant::Format::kQ4_1;
  EXPECT_TRUE(make_random_model(model).ok());
}

}  // namespace
}  // namespace tern::tools
