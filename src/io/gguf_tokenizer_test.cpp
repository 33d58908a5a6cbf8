#include "io/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>

#include "io/gguf_writer.h"
#include "text/byte_level.h"
#include "text/tokenizer.h"

namespace tern::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The keys of a small vocabulary: 256 bytes, "hi", <|im_end|> (control), <think> (user-defined).
// An absent value leaves its key out.
struct Keys {
  std::optional<std::string> model = "gpt2";
  std::optional<std::string> pre = "qwen2";
  std::vector<std::string> tokens;
  std::optional<std::vector<std::int32_t>> types;
  std::optional<std::vector<std::string>> merges = {{"h i"}};
  std::function<void(GgufWriter&)> more = [](GgufWriter&) {};

  Keys() {
    for (int b = 0; b < 256; ++b) {
      const char byte = static_cast<char>(b);
      tokens.push_back(text::spell_bytes(std::string_view(&byte, 1)));
    }
    for (const char* token : {"hi", "<|im_end|>", "<think>"}) tokens.emplace_back(token);
    types.emplace(257, 1);
    types->push_back(3);
    types->push_back(4);
  }

  [[nodiscard]] Result<text::TokenizerData> read() const {
    GgufWriter writer;
    if (model) writer.add_string("tokenizer.ggml.model", *model);
    if (pre) writer.add_string("tokenizer.ggml.pre", *pre);
    writer.add_strings("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
    if (types) writer.add_i32s("tokenizer.ggml.token_type", *types);
    if (merges) {
      writer.add_strings("tokenizer.ggml.merges", std::span<const std::string>(*merges));
    }
    more(writer);
    const std::vector<std::byte> bytes = writer.to_bytes().value();
    const GgufFile file = GgufFile::read(bytes).value();
    return read_gguf_tokenizer(file);
  }
  // Why the tokenizer is refused, by the reader or when it is made.
  [[nodiscard]] std::string refusal() const {
    const auto data = read();
    if (!data.ok()) return data.error().what();
    const auto made = text::Tokenizer::create(*data);
    return made.ok() ? "accepted" : made.error().what();
  }
};

TEST(GgufTokenizer, ReadsAByteLevelBpe) {
  Keys keys;
  keys.more = [](GgufWriter& writer) {
    writer.add_u32("tokenizer.ggml.eos_token_id", 257);
    writer.add_u32("tokenizer.ggml.padding_token_id", 258);
    writer.add_i32("tokenizer.ggml.eot_token_id", 256);
    writer.add_bool("tokenizer.ggml.add_bos_token", false);
    writer.add_string("tokenizer.chat_template", "{{ messages }}");
  };
  const text::TokenizerData data = keys.read().value();
  EXPECT_EQ(data.pre, "qwen2");
  EXPECT_EQ(data.end_id, 257);
  EXPECT_EQ(data.padding_id, 258);
  EXPECT_EQ(data.end_of_turn_id, 256);
  EXPECT_EQ(data.begin_id, std::nullopt);
  EXPECT_EQ(data.add_begin, false);
  EXPECT_EQ(data.chat_template, "{{ messages }}");
  EXPECT_THAT(data.warnings, IsEmpty());
  const text::Tokenizer tokenizer = text::Tokenizer::create(data).value();
  EXPECT_THAT(tokenizer.encode("hi<|im_end|><think>", {}).value(), ElementsAre(256, 257, 258));
  EXPECT_TRUE(tokenizer.is_special(257));
  EXPECT_FALSE(tokenizer.is_special(258));
}

TEST(GgufTokenizer, WarnsAboutAMissingSplitRule) {
  Keys keys;
  keys.pre.reset();
  const text::TokenizerData data = keys.read().value();
  EXPECT_EQ(data.pre, "default");
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("'tokenizer.ggml.pre' is missing")));
}

TEST(GgufTokenizer, WarnsAboutMissingTypes) {
  Keys keys;
  keys.types.reset();
  const text::TokenizerData data = keys.read().value();
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("'tokenizer.ggml.token_type' is missing")));
  EXPECT_THAT(data.added, IsEmpty());
}

TEST(GgufTokenizer, RefusesByNameWhatItDoesNotKnow) {
  Keys keys;
  keys.model = "llama";
  EXPECT_THAT(keys.refusal(), HasSubstr("tokenizer model 'llama' is not supported"));
  keys = {};
  keys.pre = "jais2";
  EXPECT_THAT(keys.refusal(), HasSubstr("pre-tokenizer 'jais2' is not supported"));
}

TEST(GgufTokenizer, NamesMissingAndMistypedKeys) {
  Keys keys;
  keys.model.reset();
  EXPECT_EQ(keys.refusal(), "key 'tokenizer.ggml.model' is missing");
  keys = {};
  keys.merges.reset();
  EXPECT_EQ(keys.refusal(), "key 'tokenizer.ggml.merges' is missing");
  keys = {};
  keys.more = [](GgufWriter& writer) { writer.add_u32("tokenizer.chat_template", 1); };
  EXPECT_THAT(keys.refusal(), HasSubstr("key 'tokenizer.chat_template' is u32"));
  keys.more = [](GgufWriter& writer) { writer.add_u32("tokenizer.ggml.add_bos_token", 1); };
  EXPECT_THAT(keys.refusal(), HasSubstr("key 'tokenizer.ggml.add_bos_token' is u32"));
}

TEST(GgufTokenizer, RefusesTokensThatAreNoStrings) {
  GgufWriter writer;
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_i32s("tokenizer.ggml.tokens", std::vector<std::int32_t>{1, 2, 3});
  const std::vector<std::byte> bytes = writer.to_bytes().value();
  const auto data = read_gguf_tokenizer(GgufFile::read(bytes).value());
  ASSERT_FALSE(data.ok());
  EXPECT_THAT(data.error().what(), HasSubstr("key 'tokenizer.ggml.tokens' is array of 3 i32"));
}

TEST(GgufTokenizer, RefusesAWrongNumberOfTypesAndUnknownTypes) {
  Keys keys;
  keys.types->pop_back();
  EXPECT_THAT(keys.refusal(), HasSubstr("has 258 entries, but 'tokenizer.ggml.tokens' has 259"));
  // The count is looked at before any of the numbers is.
  keys.types.reset();
  keys.more = [](GgufWriter& writer) {
    const std::array<std::uint32_t, 5> one_u64_beyond_2_63 = {10, 1, 0, 0xFFFFFFFF, 0xFFFFFFFF};
    writer.add_raw("tokenizer.ggml.token_type", 9, std::as_bytes(std::span(one_u64_beyond_2_63)));
  };
  EXPECT_THAT(keys.refusal(), HasSubstr("has 1 entries, but 'tokenizer.ggml.tokens' has 259"));
  keys = {};
  (*keys.types)[256] = 7;
  EXPECT_THAT(keys.refusal(), HasSubstr("token 256 ('hi') has the type 7"));
}

TEST(GgufTokenizer, RefusesIdsOutsideOfTheVocabulary) {
  const auto with = [](const std::string& name, std::int64_t id) {
    Keys keys;
    keys.more = [&](GgufWriter& writer) { writer.add_i64("tokenizer.ggml." + name, id); };
    return keys.refusal();
  };
  EXPECT_THAT(with("eos_token_id", 259),
              HasSubstr("'tokenizer.ggml.eos_token_id' is 259, but ids go from 0 to 258"));
  EXPECT_THAT(with("eos_token_id", 4294967295), HasSubstr("is 4294967295"));
  EXPECT_THAT(with("eos_token_id", -1), HasSubstr("is -1"));
  // "None", where there need not be such a token.
  EXPECT_EQ(with("bos_token_id", -1), "accepted");
  EXPECT_EQ(with("padding_token_id", 4294967295), "accepted");
  EXPECT_THAT(with("bos_token_id", 259), HasSubstr("is 259"));
}

TEST(GgufTokenizer, RefusesMisspelledByteTokensAndDamagedMerges) {
  for (const char* name : {"<0x-1>", "<0xG0>", "<0x100>"}) {
    Keys keys;
    keys.tokens.emplace_back(name);
    keys.types->push_back(6);
    EXPECT_THAT(keys.refusal(), HasSubstr("token 259 is a byte token")) << name;
  }
  Keys keys;
  keys.merges = {{"h i", "hi"}};
  EXPECT_THAT(keys.refusal(), HasSubstr("merge 1 ('hi')"));
  keys.merges = {{"h i", "h x", "h i"}};
  EXPECT_THAT(keys.refusal(), HasSubstr("merge 1 ('h x') makes 'hx', which is no token"));
}

TEST(GgufTokenizer, LeavesControlTokensWithoutATextAlone) {
  Keys keys;
  keys.tokens.emplace_back("");
  keys.types->push_back(3);
  EXPECT_EQ(keys.refusal(), "accepted");
  EXPECT_THAT(keys.read().value().warnings, ElementsAre(HasSubstr("1 control")));
}

}  // namespace
}  // namespace tern::io
