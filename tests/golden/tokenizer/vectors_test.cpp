// Every line of the vectors: ids in three readings, decoded text, and streams chunk by chunk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <iterator>
#include <ostream>
#include <sstream>

#include "base/utf8.h"
#include "golden_data.h"
#include "text/stream_decoder.h"

namespace tern::text {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

struct Vectors {
  const char* tokenizer;
  const char* file;
  std::size_t lines;  // so that a file cut short is noticed
};
void PrintTo(const Vectors& v, std::ostream* out) { *out << v.file; }

std::string name_of(const testing::TestParamInfo<Vectors>& info) {
  std::string name;
  for (const char c : std::string(info.param.file)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  return name;
}

class TokenizerVectors : public testing::TestWithParam<Vectors> {};

Ids encode(const Tokenizer& tokenizer, const std::string& text, ParseSpecial parse) {
  return tokenizer.encode(text, {.add_special = false, .parse_special = parse}).value();
}

// Why a line is not as expected; empty: it is.
std::string difference(const Tokenizer& tokenizer, const json& line) {
  const auto text = line.at("text").get<std::string>();
  const auto ids = line.at("ids").get<Ids>();
  const auto no_special = line.at("ids_no_special").get<Ids>();
  const auto plain = line.contains("ids_plain") ? line["ids_plain"].get<Ids>() : no_special;
  std::string what;
  if (encode(tokenizer, text, ParseSpecial::kAll) != ids) what += " ids";
  if (encode(tokenizer, text, ParseSpecial::kDefined) != no_special) what += " ids_no_special";
  if (encode(tokenizer, text, ParseSpecial::kNone) != plain) what += " ids_plain";
  const std::string decoded = replace_invalid_utf8(tokenizer.decode(ids, false).value());
  if (decoded != line.at("decoded").get<std::string>()) what += " decoded";
  return what;
}

TEST_P(TokenizerVectors, AreTheIdsOfHuggingFace) {
  const Tokenizer tokenizer = golden_tokenizer(GetParam().tokenizer);
  const std::vector<json> lines = golden_lines(GetParam().file);
  EXPECT_EQ(lines.size(), GetParam().lines);
  std::size_t marked = 0, marked_equal = 0;
  for (const json& line : lines) {
    const std::string what = difference(tokenizer, line);
    if (line.contains("unicode")) {
      // The ids depend on the age of the Unicode tables; Tern's are of the same age.
      ++marked;
      if (what.empty()) ++marked_equal;
    }
    EXPECT_EQ(what, "") << line.at("group") << ": " << line.at("text");
  }
  std::printf("%s: %zu lines, of which %zu depend on the Unicode version (%zu equal)\n",
              GetParam().file, lines.size(), marked, marked_equal);
}

INSTANTIATE_TEST_SUITE_P(Published, TokenizerVectors,
                         testing::Values(Vectors{"smollm2", "smollm2.jsonl", 120},
                                         Vectors{"qwen3", "qwen3.jsonl", 357},
                                         Vectors{"qwen3", "qwen3_long.jsonl", 8},
                                         Vectors{"llama-bpe", "gguf_llama-bpe.jsonl", 80},
                                         Vectors{"gpt-2", "gguf_gpt-2.jsonl", 80},
                                         Vectors{"qwen35", "gguf_qwen35.jsonl", 80}),
                         name_of);

class StreamVectors : public testing::TestWithParam<Vectors> {};

TEST_P(StreamVectors, GiveTheSameChunks) {
  const Tokenizer tokenizer = golden_tokenizer(GetParam().tokenizer);
  const std::vector<json> lines = golden_lines(GetParam().file);
  EXPECT_EQ(lines.size(), GetParam().lines);
  const auto expect_chunks = [&](const json& line, const json& expected, bool skip_special) {
    StreamDecoder decoder(tokenizer, skip_special);
    std::vector<std::string> chunks;
    for (const std::int32_t id : line.at("ids").get<Ids>()) {
      chunks.push_back(decoder.push(id).value());
    }
    EXPECT_EQ(chunks, expected.at("chunks").get<std::vector<std::string>>()) << line;
    EXPECT_EQ(decoder.flush(), expected.at("flush").get<std::string>()) << line;
  };
  for (const json& line : lines) {
    expect_chunks(line, line, false);
    if (line.contains("skip_special")) expect_chunks(line, line["skip_special"], true);
  }
}

INSTANTIATE_TEST_SUITE_P(Published, StreamVectors,
                         testing::Values(Vectors{"smollm2", "smollm2_stream.jsonl", 53},
                                         Vectors{"qwen3", "qwen3_stream.jsonl", 77}),
                         name_of);

class EngineVectors : public testing::TestWithParam<const char*> {};

// The test strings of another engine. It does not normalise, so for the comparison neither do we.
TEST_P(EngineVectors, AreTheIdsOfAnIndependentEngine) {
  TokenizerData data = golden_tokenizer_data(GetParam());
  data.nfc = false;
  const Tokenizer tokenizer = Tokenizer::create(data).value();
  const std::string stem = std::string("ggml-vocab-") + GetParam() + ".gguf";
  const std::string inputs = golden_text(stem + ".inp"), outputs = golden_text(stem + ".out");
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  std::size_t line_begin = 0, at = 0, count = 0;
  while (at < inputs.size()) {
    const std::size_t end = std::min(inputs.find(kSeparator, at), inputs.size());
    if (end == inputs.size()) break;  // each string ends with the separator
    const std::size_t line_end = outputs.find('\n', line_begin);
    ASSERT_NE(line_end, std::string::npos);
    std::istringstream words(outputs.substr(line_begin, line_end - line_begin));
    const Ids expected{std::istream_iterator<std::int32_t>(words), {}};
    const std::string text = inputs.substr(at, end - at);
    EXPECT_EQ(encode(tokenizer, text, ParseSpecial::kNone), expected) << text;
    line_begin = line_end + 1;
    at = end + kSeparator.size();
    ++count;
  }
  EXPECT_EQ(line_begin, outputs.size());
  EXPECT_GE(count, 46U);
}

INSTANTIATE_TEST_SUITE_P(Published, EngineVectors, testing::Values("gpt-2", "llama-bpe", "qwen35"));

}  // namespace
}  // namespace tern::text
