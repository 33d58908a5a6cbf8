#include "io/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "text/byte_level.h"
#include "text/tokenizer.h"

namespace tern::io {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using text::TokenType;

constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

json added(int id, const std::string& content, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

// Braces alone would make an object of it.
json pair(const char* left, const char* right) { return json::array({left, right}); }

// 256 bytes, "hi", two added tokens.
json valid() {
  json vocabulary = json::object();
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    vocabulary[text::spell_bytes(std::string_view(&byte, 1))] = b;
  }
  vocabulary["hi"] = 256;
  const json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", false},
                           {"use_regex", false}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"added_tokens", {added(257, "<|im_end|>", true), added(258, "<think>", false)}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"},
               {"pattern", {{"Regex", kQwen2Pattern}}},
               {"behavior", "Isolated"},
               {"invert", false}},
              byte_level}}}},
          {"post_processor", byte_level},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", json::array({pair("h", "i")})}}}};
}

Result<text::TokenizerData> parse(const std::string& tokenizer,
                                  std::optional<std::string> config = {}) {
  TokenizerTexts texts{
      .tokenizer = tokenizer, .config = {}, .generation_config = {}, .chat_template = {}};
  if (config) texts.config = *config;
  return parse_tokenizer_json(texts);
}

std::string refusal(const std::string& tokenizer, std::optional<std::string> config = {}) {
  const auto data = parse(tokenizer, std::move(config));
  return data.ok() ? "accepted" : data.error().what();
}

// The refusal of valid() after an edit.
std::string refusal_of(const std::function<void(json&)>& edit) {
  json tokenizer = valid();
  edit(tokenizer);
  return refusal(tokenizer.dump());
}

TEST(TokenizerJson, ReadsAByteLevelBpe) {
  const text::TokenizerData data = parse(valid().dump()).value();
  EXPECT_EQ(data.pre, "qwen2");
  EXPECT_EQ(data.nfc, true);
  EXPECT_EQ(data.whole_words, false);
  ASSERT_EQ(data.tokens.size(), 259U);
  EXPECT_EQ(data.tokens[256], "hi");
  EXPECT_EQ(data.tokens[257], "<|im_end|>");
  EXPECT_EQ(data.types[256], TokenType::kNormal);
  EXPECT_EQ(data.types[257], TokenType::kControl);
  EXPECT_EQ(data.types[258], TokenType::kUserDefined);
  EXPECT_EQ(data.merges[0], "h i");
  EXPECT_EQ(data.add_begin, false);
  const text::Tokenizer tokenizer = text::Tokenizer::create(data).value();
  EXPECT_THAT(tokenizer.encode("hi<|im_end|>", {}).value(), ElementsAre(256, 257));
}

TEST(TokenizerJson, ReadsMergesInBothSpellings) {
  json tokenizer = valid();
  tokenizer["model"]["merges"] = json::array({"h i"});
  EXPECT_EQ(parse(tokenizer.dump()).value().merges[0], "h i");
}

TEST(TokenizerJson, RecognisesTheKnownPreTokenizers) {
  json tokenizer = valid();
  json& pre = tokenizer["pre_tokenizer"];
  const json with_regex = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  pre = with_regex;
  EXPECT_EQ(parse(tokenizer.dump()).value().pre, "gpt-2");
  pre = {{"type", "Sequence"},
         {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, with_regex}}};
  EXPECT_EQ(parse(tokenizer.dump()).value().pre, "smollm");
  tokenizer["normalizer"] = nullptr;
  EXPECT_EQ(parse(tokenizer.dump()).value().nfc, false);
}

TEST(TokenizerJson, RefusesByNameWhatItDoesNotKnow) {
  EXPECT_THAT(refusal_of([](json& t) { t["model"]["type"] = "Unigram"; }),
              HasSubstr("tokenizer.json: model type 'Unigram' is not supported"));
  EXPECT_THAT(refusal_of([](json& t) { t["model"]["byte_fallback"] = true; }),
              HasSubstr("model option 'byte_fallback'"));
  EXPECT_THAT(refusal_of([](json& t) { t["model"]["unk_token"] = "<unk>"; }),
              HasSubstr("model option 'unk_token' is not supported (<unk>)"));
  EXPECT_THAT(refusal_of([](json& t) {
                t["normalizer"] = {{"type", "Lowercase"}};
              }),
              HasSubstr("normalizer 'Lowercase'"));
  EXPECT_THAT(refusal_of([](json& t) {
                t["decoder"] = {{"type", "WordPiece"}};
              }),
              HasSubstr("decoder 'WordPiece'"));
  EXPECT_THAT(refusal_of([](json& t) {
                t["pre_tokenizer"] = {{"type", "Metaspace"}};
              }),
              HasSubstr("pre_tokenizer Metaspace"));
  EXPECT_THAT(refusal_of([](json& t) {
                t["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a+)+$";
              }),
              HasSubstr("Split((a+)+$), ByteLevel is none of those"));
  EXPECT_THAT(refusal_of([](json& t) { t["pre_tokenizer"] = nullptr; }),
              HasSubstr("without pre_tokenizer"));
  EXPECT_THAT(refusal_of([](json& t) {
                t["post_processor"] = {{"type", "BertProcessing"}};
              }),
              HasSubstr("post_processor 'BertProcessing'"));
  EXPECT_THAT(refusal_of([](json& t) { t["added_tokens"][0]["single_word"] = true; }),
              HasSubstr("'single_word' is not supported"));
}

TEST(TokenizerJson, RefusesWrongIdsWithTheTokenAndTheId) {
  EXPECT_THAT(refusal_of([](json& t) { t["model"]["vocab"]["hi"] = 5; }),
              HasSubstr("both have the id 5"));
  EXPECT_THAT(refusal_of([](json& t) { t["model"]["vocab"]["hi"] = -1; }),
              HasSubstr("token 'hi' has the id -1"));
  EXPECT_THAT(refusal_of([](json& t) { t["model"]["vocab"]["hi"] = 2147483648; }),
              HasSubstr("token 'hi' has the id 2147483648"));
  EXPECT_THAT(refusal_of([](json& t) { t["model"]["vocab"]["hi"] = 1.5; }),
              HasSubstr("token 'hi' has the id 1.5"));
  EXPECT_THAT(refusal_of([](json& t) { t["model"]["vocab"]["hi"] = json::array(); }),
              HasSubstr("token 'hi' has the id a list"));
  EXPECT_THAT(refusal_of([](json& t) { t["added_tokens"][0]["id"] = -1; }),
              HasSubstr("added token '<|im_end|>' has the id -1"));
  EXPECT_THAT(refusal_of([](json& t) { t["added_tokens"][1]["id"] = 257; }),
              HasSubstr("tokens '<|im_end|>' and '<think>' both have the id 257"));
  EXPECT_THAT(refusal_of([](json& t) { t["added_tokens"][1]["id"] = 256; }),
              HasSubstr("tokens 'hi' and '<think>' both have the id 256"));
  EXPECT_THAT(refusal_of([](json& t) { t["added_tokens"][1]["content"] = "hi"; }),
              HasSubstr("added token 'hi' has the id 258, but 256 in model.vocab"));
}

TEST(TokenizerJson, TakesGapsForUnusedIds) {
  json tokenizer = valid();
  tokenizer["added_tokens"][1]["id"] = 300;
  const text::TokenizerData data = parse(tokenizer.dump()).value();
  ASSERT_EQ(data.tokens.size(), 301U);
  EXPECT_EQ(data.types[299], TokenType::kUnused);
  EXPECT_EQ(data.tokens[299], "");
  EXPECT_TRUE(text::Tokenizer::create(data).ok());
}

TEST(TokenizerJson, RefusesAnAddedTokenWithoutContent) {
  EXPECT_THAT(refusal_of([](json& t) { t["added_tokens"][1]["content"] = ""; }),
              HasSubstr("added token 258 has an empty content"));
  EXPECT_THAT(refusal_of([](json& t) { t["added_tokens"][1].erase("content"); }),
              HasSubstr("no content"));
}

TEST(TokenizerJson, RefusesDamagedMergesByNumber) {
  EXPECT_THAT(refusal_of([](json& t) {
                t["model"]["merges"] = json::array({pair("h", "i"), json::array({"h"})});
              }),
              HasSubstr("merge 1 does not have two tokens"));
  EXPECT_THAT(refusal_of([](json& t) {
                t["model"]["merges"] = json::array({json::array({"h", "i", "i"})});
              }),
              HasSubstr("merge 0 has more than two tokens"));
  EXPECT_THAT(refusal_of([](json& t) {
                t["model"]["merges"] = json::array({"h i", 7});
              }),
              HasSubstr("merge 1 is 7"));
  EXPECT_THAT(refusal_of([](json& t) { t["model"]["merges"] = json::array({pair("h", "i i")}); }),
              HasSubstr("merge 0 names 'i i'"));
  EXPECT_THAT(refusal_of([](json& t) {
                t["model"]["merges"] = json::object({{"h", "i"}});
              }),
              HasSubstr("model.merges is missing or not a list"));
  EXPECT_THAT(refusal_of([](json& t) { t["model"].erase("merges"); }),
              HasSubstr("model.merges is missing or not a list"));
}

TEST(TokenizerJson, RefusesWhatIsNotStrictJson) {
  const std::string text = valid().dump();
  EXPECT_THAT(refusal(text + "x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(text + "{}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(text.substr(0, text.size() / 2)), HasSubstr("not valid JSON"));
  EXPECT_EQ(refusal("{\"a\":\n NaN}"), "tokenizer.json: line 2, column 2: not valid JSON");
  EXPECT_EQ(refusal("{\"a\": \"\\ud800\"}"), "tokenizer.json: line 1, column 14: not valid JSON");
  EXPECT_THAT(refusal("{\"a\": \"\xFF\"}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("// x\n{}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("is not an object"));
  EXPECT_THAT(refusal("7"), HasSubstr("is not an object"));
  EXPECT_THAT(refusal("{\"a\":1,\"a\":2}"), HasSubstr("key 'a' is given twice"));
  EXPECT_THAT(refusal("{}"), HasSubstr("model type 'null'"));
  std::string twice = text;
  const std::string_view entry = R"("hi":256)";
  ASSERT_NE(twice.find(entry), std::string::npos);
  twice.replace(twice.find(entry), entry.size(), R"("hi":256,"hi":300)");
  EXPECT_THAT(refusal(twice), HasSubstr("token 'hi' is given twice, with the id 300 too"));
}

TEST(TokenizerJson, RefusesDeepNestingAndEndlessStrings) {
  EXPECT_EQ(refusal("{\"a\":" + std::string(10'000, '[')),
            "tokenizer.json: line 1, column 69: nested deeper than 64 levels");
  std::string nested = "{\"a\":" + std::string(63, '[') + std::string(63, ']') + "}";
  EXPECT_THAT(refusal(nested), HasSubstr("model type"));  // 64 levels are read
  EXPECT_THAT(refusal("{\"a\":\"" + std::string((64U << 20) + 2, 'x') + "\"}"),
              HasSubstr("line 1, column 7: a string is longer than 67108864 bytes"));
  std::string values = "{\"a\":[0";
  for (int i = 0; i < 500'000; ++i) values += ",0";
  EXPECT_THAT(refusal(values + "]}"), HasSubstr("more than 500000 values"));
}

TEST(TokenizerJson, SurvivesEveryCutAndEveryChangedByte) {
  json tokenizer = valid();
  // Short enough to try them all.
  tokenizer["model"]["vocab"] = {{"h", 0}, {"i", 1}, {"hi", 2}};
  tokenizer["added_tokens"] = json::array({added(3, "<s>", true)});
  const std::string text = tokenizer.dump();
  ASSERT_TRUE(parse(text).ok()) << refusal(text);
  for (std::size_t n = 0; n < text.size(); ++n) {
    EXPECT_FALSE(parse(text.substr(0, n)).ok()) << n;
    for (const char c : {'"', '}', '9'}) {
      std::string changed = text;
      changed[n] = c;
      const auto data = parse(changed);
      if (data.ok()) static_cast<void>(text::Tokenizer::create(*data).ok());
    }
  }
}

TEST(TokenizerJson, AddsTheTokensOfATemplatePostProcessor) {
  json tokenizer = valid();
  tokenizer["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}},
        {{"type", "TemplateProcessing"},
         {"single",
          {{{"SpecialToken", {{"id", "<|im_end|>"}, {"type_id", 0}}}},
           {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
         {"special_tokens", {{"<|im_end|>", {{"id", "<|im_end|>"}, {"ids", {257}}}}}}}}}};
  const text::TokenizerData data = parse(tokenizer.dump()).value();
  EXPECT_EQ(data.add_begin, true);
  EXPECT_FALSE(data.add_end);
  EXPECT_EQ(data.begin_id, 257);
  tokenizer["post_processor"]["processors"][1]["special_tokens"]["<|im_end|>"]["ids"] = {999};
  EXPECT_THAT(refusal(tokenizer.dump()), HasSubstr("'<|im_end|>' has no id of a token"));
}

TEST(TokenizerJson, ReadsTheConfiguration) {
  const json config = {{"bos_token", nullptr},
                       {"eos_token", {{"content", "<|im_end|>"}}},
                       {"pad_token", "hi"},
                       {"add_bos_token", false},
                       {"chat_template", "{{ messages }}"}};
  const text::TokenizerData data = parse(valid().dump(), config.dump()).value();
  EXPECT_EQ(data.end_id, 257);
  EXPECT_EQ(data.padding_id, 256);
  EXPECT_EQ(data.begin_id, std::nullopt);
  EXPECT_EQ(data.chat_template, "{{ messages }}");

  EXPECT_THAT(refusal(valid().dump(), R"({"eos_token":"<gone>"})"),
              HasSubstr("tokenizer_config.json: 'eos_token' is '<gone>', which is no token"));
  EXPECT_THAT(refusal(valid().dump(), R"({"chat_template":7})"), HasSubstr("'chat_template'"));
  EXPECT_EQ(parse(valid().dump(),
                  R"({"chat_template":[{"name":"rag","template":"r"},
                                       {"name":"default","template":"d"}]})")
                .value()
                .chat_template,
            "d");
  EXPECT_EQ(parse(valid().dump(), R"({"bos_token":"hi","add_bos_token":true})").value().add_begin,
            true);
}

class TokenizerFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "tern_tokenizer_json_test";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::filesystem::path folder_;
};

TEST_F(TokenizerFolder, IsReadWithTheFilesBesideIt) {
  write("tokenizer.json", valid().dump());
  EXPECT_EQ(read_tokenizer_json(folder_).value().chat_template, "");
  write("tokenizer_config.json", R"({"eos_token":"<|im_end|>","chat_template":"old"})");
  write("generation_config.json", R"({"eos_token_id":[257,256]})");
  EXPECT_EQ(read_tokenizer_json(folder_).value().chat_template, "old");
  write("chat_template.jinja", "new");
  for (const auto& path : {folder_, folder_ / "tokenizer.json"}) {
    const text::TokenizerData data = read_tokenizer_json(path).value();
    EXPECT_EQ(data.chat_template, "new");
    EXPECT_EQ(data.end_id, 257);
    EXPECT_THAT(data.more_end_ids, ElementsAre(257, 256));
  }
  write("generation_config.json", R"({"eos_token_id":[259]})");
  EXPECT_THAT(read_tokenizer_json(folder_).error().what(),
              HasSubstr("generation_config.json: eos_token_id has the id 259"));
}

TEST_F(TokenizerFolder, IsAnErrorWithoutATokenizer) {
  const auto data = read_tokenizer_json(folder_);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tern::io
