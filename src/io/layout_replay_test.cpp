// Type ids with several meanings: the worked examples, and every way in which a decision can fail.
#include "io/layout_replay.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "io/gguf.h"
#include "io/gguf_writer.h"
#include "quant/codec.h"

namespace tern::io {
namespace {

using Bytes = std::vector<std::byte>;
using quant::Format;

std::string message_of(const Bytes& bytes, const std::string& layout = "") {
  const auto file = GgufFile::read(bytes, {layout});
  return file.ok() ? "loads" : file.error().message();
}

// Ternary rows with scale 0.25 that use all three codes, in the given format.
Bytes ternary(Format format, std::uint64_t weights) {
  std::vector<float> row(weights);
  for (std::size_t j = 0; j < row.size(); ++j) {
    row[j] = 0.25F * static_cast<float>(static_cast<int>(j * 7 / 3 % 3) - 1);
  }
  Bytes bytes(quant::bytes_for(format, weights));
  quant::encode_row(format, row.data(), static_cast<std::int64_t>(weights), bytes.data()).value();
  return bytes;
}

// The same codes with the scale moved to the end of each block.
Bytes codes_first(Bytes blocks) {
  for (std::size_t at = 0; at < blocks.size(); at += 34) {
    std::rotate(blocks.begin() + static_cast<std::ptrdiff_t>(at),
                blocks.begin() + static_cast<std::ptrdiff_t>(at) + 2,
                blocks.begin() + static_cast<std::ptrdiff_t>(at) + 34);
  }
  return blocks;
}

struct Part {
  std::string name;
  std::vector<std::uint64_t> ne;
  std::uint32_t type_id;
  Bytes bytes;
};
Bytes file_of(const std::vector<Part>& parts, bool pads = true,
              const std::string& quantization_version = "") {
  GgufWriter::Options options;
  options.pads_between_tensors = pads;
  GgufWriter writer(options);
  writer.add_string("general.architecture", "qwen3");
  if (!quantization_version.empty()) {
    writer.add_string("general.quantization_version", quantization_version);
  }
  for (const Part& part : parts) writer.add_tensor(part.name, part.ne, part.type_id, part.bytes);
  return writer.to_bytes().value();
}

// The three tensors of the worked example under type 42.
std::vector<Part> worked_example(Format format) {
  return {{"token_embd.weight", {256, 100}, 42, ternary(format, 25600)},
          {"output_norm.weight", {256}, 0, Bytes(1024)},
          {"blk.0.attn_q.weight", {256, 256}, 42, ternary(format, 65536)}};
}

TEST(LayoutReplay, TheWorkedExampleInGroupsOf64) {
  const Bytes bytes = file_of(worked_example(Format::kT2G64));
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->tensors()[1].offset, 7200U);
  EXPECT_EQ(file->tensors()[2].offset, 8224U);
  EXPECT_EQ(file->tensors()[2].offset + file->tensors()[2].bytes.size(), 26656U);
  EXPECT_EQ(file->tensors()[0].format, Format::kT2G64);
  EXPECT_EQ(file->tensors()[0].type_name, "Q2_0");
}

TEST(LayoutReplay, TheWorkedExampleInGroupsOf128) {
  const Bytes bytes = file_of(worked_example(Format::kT2G128));
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->tensors()[1].offset, 6816U);
  EXPECT_EQ(file->tensors()[2].offset, 7840U);
  EXPECT_EQ(file->tensors()[2].offset + file->tensors()[2].bytes.size(), 25248U);
  EXPECT_EQ(file->tensors()[0].format, Format::kT2G128);
  EXPECT_EQ(file->tensors()[0].type_name, "Q2_0 (128, older)");
  EXPECT_TRUE(file->notes().empty());
}

TEST(LayoutReplay, TheWorkedExampleOfAWriterThatDoesNotPad) {
  const Bytes bytes = file_of(worked_example(Format::kT2G128), false);
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->tensors()[1].offset, 6800U);
  EXPECT_EQ(file->tensors()[2].offset, 7824U);
  EXPECT_EQ(file->tensors()[2].offset + file->tensors()[2].bytes.size(), 25232U);
  EXPECT_EQ(file->tensors()[0].format, Format::kT2G128);
  ASSERT_EQ(file->notes().size(), 1U);
  EXPECT_EQ(file->notes()[0], "the tensors are not padded to the alignment of 32");
}

// One tensor of 256 weights: 72 or 68 bytes, and both are padded to 96.
Bytes short_file(std::size_t data_bytes) {
  Bytes bytes = file_of({{"w", {256}, 42, ternary(Format::kT2G128, 256)}});
  bytes.resize(bytes.size() - 96 + data_bytes);
  return bytes;
}

TEST(LayoutReplay, ALastTensorIsDecidedByTheLengthOfTheFile) {
  const Bytes bytes_68 = short_file(68);
  const auto file_68 = GgufFile::read(bytes_68);
  ASSERT_TRUE(file_68.ok()) << file_68.error().message();
  EXPECT_EQ(file_68->tensors()[0].format, Format::kT2G128);
  const Bytes bytes_72 = short_file(72);
  const auto file_72 = GgufFile::read(bytes_72);
  ASSERT_TRUE(file_72.ok()) << file_72.error().message();
  EXPECT_EQ(file_72->tensors()[0].format, Format::kT2G64);
}

TEST(LayoutReplay, TwoLayoutsThatFitAreLeftToTheUser) {
  const Bytes bytes = short_file(96);
  EXPECT_EQ(message_of(bytes),
            "type 42 could be q2_0-g64 or q2_0-g128 in this file; say which with --layout");
  EXPECT_EQ(GgufFile::read(bytes, {"q2_0-g64"})->tensors()[0].format, Format::kT2G64);
  EXPECT_EQ(GgufFile::read(bytes, {"q2_0-g128"})->tensors()[0].format, Format::kT2G128);
  EXPECT_EQ(message_of(bytes, "i2s"), "layout 'i2s' is not known; known: q2_0-g64 q2_0-g128");
}

TEST(LayoutReplay, ALayoutThatDoesNotFitIsRefusedEvenWhenTheUserNamesIt) {
  const Bytes bytes = file_of(worked_example(Format::kT2G64));
  EXPECT_EQ(
      message_of(bytes, "q2_0-g128"),
      "tensor 'output_norm.weight' has offset 7200, but type 42 needs 6816; the file matches no "
      "known layout of this type");
}

TEST(LayoutReplay, OffsetsThatFitNoLayoutAreRefused) {
  std::vector<Part> parts = worked_example(Format::kT2G64);
  parts[0].bytes.resize(7000);
  EXPECT_EQ(message_of(file_of(parts)),
            "tensor 'output_norm.weight' has offset 7008, but type 42 needs 7200 or 6816; the file "
            "matches no known layout of this type");
}

TEST(LayoutReplay, ATruncatedFileOfAKnownLayoutIsIncompleteAndNotUnknown) {
  Bytes bytes = file_of(worked_example(Format::kT2G128));
  bytes.resize(bytes.size() - 64);
  const std::string message = message_of(bytes);
  EXPECT_EQ(message.find("damaged or incomplete: tensor 'blk.0.attn_q.weight' needs bytes"), 0U)
      << message;
}

TEST(LayoutReplay, ATypeOfAnotherProgramUnderOneOfTheseIdsIsRefusedByName) {
  for (const std::uint32_t id : {41U, 142U, 143U}) {
    const Bytes bytes = file_of({{"a", {256, 100}, id, Bytes(25600)}, {"b", {8}, 0, Bytes(32)}});
    const std::string message = message_of(bytes);
    EXPECT_EQ(message.find(fmt::format("tensor 'a' has type {} (not laid out as ", id)), 0U)
        << message;
    EXPECT_NE(message.find("which Tern does not read here (data offset 0); known: F32"),
              std::string::npos)
        << message;
  }
}

TEST(LayoutReplay, Id40IsRefusedByTheNameThatTheOffsetsGive) {
  const Bytes early = file_of({{"a", {256, 64}, 40, Bytes(3072)}, {"b", {8}, 0, Bytes(32)}});
  EXPECT_EQ(message_of(early).find(
                "tensor 'a' has type 40 (Q1_0 in groups of 32), which Tern does not read here"),
            0U);
  const Bytes nvfp4 = file_of({{"a", {256, 64}, 40, Bytes(9216)}, {"b", {8}, 0, Bytes(32)}});
  EXPECT_EQ(message_of(nvfp4).find("tensor 'a' has type 40 (NVFP4), which Tern does not read here"),
            0U);
}

TEST(LayoutReplay, ARowThatNoReadingDividesIsRefused) {
  const Bytes bytes = file_of({{"a", {96, 4}, 42, Bytes(108)}});
  EXPECT_EQ(message_of(bytes), "tensor 'a' has rows of 96, type Q2_0 needs a multiple of 64");
}

TEST(LayoutReplay, ARowThatOnlyOneReadingDividesDecides) {
  const Bytes bytes = file_of({{"a", {192}, 42, ternary(Format::kT2G64, 192)}});
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->tensors()[0].format, Format::kT2G64);
}

TEST(LayoutReplay, IdsThatMeanOneThingAreRead) {
  const Bytes bytes = file_of({{"q", {128, 3}, 41, Bytes(54)},
                               {"p", {128, 3}, 142, ternary(Format::kT2G128, 384)},
                               {"t", {128, 3}, 143, ternary(Format::kT1G128, 384)}});
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->tensors()[0].format, Format::kQ1G128);
  EXPECT_EQ(file->tensors()[1].format, Format::kT2G128);
  EXPECT_EQ(file->tensors()[1].type_name, "PQ2_0");
  EXPECT_EQ(file->tensors()[2].format, Format::kT1G128);
}

TEST(ScalePlace, CodesFirstFilesAreRefusedByName) {
  std::vector<Part> parts = worked_example(Format::kT2G128);
  parts[0].bytes = codes_first(parts[0].bytes);
  parts[2].bytes = codes_first(parts[2].bytes);
  const std::string message = message_of(file_of(parts));
  EXPECT_EQ(message.find("tensor 'token_embd.weight' has type 42 (TQ2_0_g128: codes first, the "
                         "scale last), which Tern does not read here"),
            0U)
      << message;
}

TEST(ScalePlace, ADeclarationOfTheWriterIsBelieved) {
  const Bytes bytes = file_of(worked_example(Format::kT2G128), true, "TQ2_0_G128");
  EXPECT_NE(message_of(bytes).find("TQ2_0_g128: codes first"), std::string::npos);
}

TEST(ScalePlace, BlocksThatFitNeitherReadingAreDamaged) {
  std::vector<Part> parts = worked_example(Format::kT2G128);
  parts[0].bytes = Bytes(6800, std::byte{0xff});
  const std::string message = message_of(file_of(parts));
  EXPECT_EQ(
      message.find("type 42 blocks look damaged: 28.1% bad scales or codes read scale-first, "),
      0U)
      << message;  // 200 of the 712 blocks
}

TEST(ScalePlace, BlocksOfZerosAreTakenScaleFirstWithANote) {
  std::vector<Part> parts = worked_example(Format::kT2G128);
  parts[0].bytes = Bytes(6800);
  parts[2].bytes = Bytes(17408);
  const Bytes bytes = file_of(parts);
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  ASSERT_EQ(file->notes().size(), 1U);
  EXPECT_NE(file->notes()[0].find("first is assumed"), std::string::npos);
}

TEST(ScalePlace, ManyBlocksAreSampledEvenly) {
  // 6000 blocks in three tensors, the middle one damaged: a third of 2000 samples
  const Bytes good = ternary(Format::kT2G128, 2000 * 128);
  const Bytes bad(2000 * 34, std::byte{0xff});
  const std::vector<std::span<const std::byte>> tensors = {good, bad, good};
  const ScalePlaces places = sample_scale_places(tensors);
  EXPECT_EQ(places.blocks, 2000U);
  EXPECT_NEAR(static_cast<double>(places.bad_first), 666.7, 1.0);
}

}  // namespace
}  // namespace tern::io
