#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "text/byte_level.h"

namespace tern::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Ids = std::vector<std::int32_t>;

constexpr std::int32_t kHi = 256;         // "hi"
constexpr std::int32_t kSpaceHi = 257;    // " hi"
constexpr std::int32_t kStart = 258;      // <s>, control
constexpr std::int32_t kEnd = 259;        // <|im_end|>, control
constexpr std::int32_t kThink = 260;      // <think>, user-defined
constexpr std::int32_t kThinkMore = 261;  // <think>more, user-defined
constexpr std::int32_t kByte = 262;       // <0x0A>
constexpr std::int32_t kUnused = 263;

// 256 bytes by their value, two words, four added tokens, a byte token and an unused one.
TokenizerData small() {
  TokenizerData data;
  data.pre = "gpt-2";
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    data.tokens.add(spell_bytes(std::string_view(&byte, 1)));
  }
  data.tokens.add("hi");
  data.tokens.add("\u0120hi");
  data.types.assign(258, TokenType::kNormal);
  data.merges = {"h i", "\u0120 hi"};
  const auto add = [&](const char* content, bool special) {
    AddedToken token;
    token.id = static_cast<std::int32_t>(data.tokens.size());
    token.content = content;
    token.special = special;
    data.tokens.add(content);
    data.types.push_back(special ? TokenType::kControl : TokenType::kUserDefined);
    data.added.push_back(std::move(token));
  };
  add("<s>", true);
  add("<|im_end|>", true);
  add("<think>", false);
  add("<think>more", false);
  data.tokens.add("<0x0A>");
  data.types.push_back(TokenType::kByte);
  data.tokens.add("[PAD0]");
  data.types.push_back(TokenType::kUnused);
  data.begin_id = kStart;
  data.end_id = kEnd;
  return data;
}

// small() with a token replaced.
TokenizerData with_token(std::size_t id, std::string_view text) {
  TokenizerData data = small();
  StringTable tokens;
  for (std::size_t i = 0; i < data.tokens.size(); ++i) tokens.add(i == id ? text : data.tokens[i]);
  data.tokens = std::move(tokens);
  return data;
}

Ids encode(const Tokenizer& t, std::string_view text, ParseSpecial parse = ParseSpecial::kAll,
           bool add_special = false) {
  return t.encode(text, {.add_special = add_special, .parse_special = parse}).value();
}

Tokenizer make(const TokenizerData& data = small()) { return Tokenizer::create(data).value(); }

std::string refusal(const TokenizerData& data) {
  const auto made = Tokenizer::create(data);
  return made.ok() ? "accepted" : made.error().what();
}

TEST(Tokenizer, MergesInsidePieces) {
  const Tokenizer t = make();
  EXPECT_THAT(encode(t, "hi hi"), ElementsAre(kHi, kSpaceHi));
  EXPECT_THAT(encode(t, "h i"), ElementsAre('h', ' ', 'i'));
  EXPECT_THAT(encode(t, ""), IsEmpty());
  EXPECT_EQ(t.size(), 264);
}

TEST(Tokenizer, StopsWhenItsCallerAsks) {
  const Tokenizer t = make();
  const CancelToken cancel = CancelToken::make();
  EXPECT_THAT(t.encode("hi hi", {}, cancel).value(), ElementsAre(kHi, kSpaceHi));
  cancel.request();
  // Pieces, one piece, marks to put in order, added tokens.
  for (const char* text : {"hi hi", "hhhhhhhh", "a\u0323\u0301", "<s><think>"}) {
    const auto stopped = t.encode(text, {}, cancel);
    ASSERT_FALSE(stopped.ok()) << text;
    EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
  }
  const std::vector<TextSegment> segments = {{"<s>", true}, {"hi", false}};
  EXPECT_EQ(t.encode_segments(segments, cancel).error().code(), ErrorCode::kCancelled);
}

TEST(Tokenizer, FindsTheLongestAddedToken) {
  const Tokenizer t = make();
  EXPECT_THAT(encode(t, "<s>hi<think>more<think>mor"),
              ElementsAre(kStart, kHi, kThinkMore, kThink, 'm', 'o', 'r'));
  EXPECT_THAT(encode(t, "<<s><s"), ElementsAre('<', kStart, '<', 's'));
}

TEST(Tokenizer, ParsesTheSpecialTokensThatItIsToldTo) {
  const Tokenizer t = make();
  EXPECT_THAT(encode(t, "<s><think>", ParseSpecial::kAll), ElementsAre(kStart, kThink));
  EXPECT_THAT(encode(t, "<s><think>", ParseSpecial::kDefined), ElementsAre('<', 's', '>', kThink));
  EXPECT_THAT(encode(t, "<s><think>", ParseSpecial::kNone),
              ElementsAre('<', 's', '>', '<', 't', kHi, 'n', 'k', '>'));
}

TEST(Tokenizer, AddsBeginAndEndTokens) {
  TokenizerData data = small();
  EXPECT_THAT(encode(make(data), "hi", ParseSpecial::kAll, true), ElementsAre(kHi));
  data.add_begin = true;
  data.add_end = true;
  const Tokenizer t = make(data);
  EXPECT_THAT(encode(t, "hi", ParseSpecial::kAll, true), ElementsAre(kStart, kHi, kEnd));
  EXPECT_THAT(encode(t, "", ParseSpecial::kAll, true), ElementsAre(kStart, kEnd));
  EXPECT_THAT(encode(t, "hi", ParseSpecial::kAll, false), ElementsAre(kHi));
  data.begin_id.reset();
  EXPECT_THAT(refusal(data), HasSubstr("a begin token is to be added, but none is named"));
}

TEST(Tokenizer, StripsWhiteSpaceAroundTokensThatAskForIt) {
  TokenizerData data = small();
  data.added[0].strips_left = true;   // <s>
  data.added[2].strips_right = true;  // <think>
  const Tokenizer t = make(data);
  EXPECT_THAT(encode(t, "x \u3000<s> y"), ElementsAre('x', kStart, ' ', 'y'));
  EXPECT_THAT(encode(t, "x <think> \n <s>"), ElementsAre('x', ' ', kThink, kStart));
  EXPECT_THAT(encode(t, " \n"), ElementsAre(' ', '\n'));
}

TEST(Tokenizer, LooksForNormalizedTokensInTheNormalForm) {
  TokenizerData data = small();
  data.nfc = true;
  for (const bool normalized : {false, true}) {
    AddedToken token;
    token.id = static_cast<std::int32_t>(data.tokens.size());
    token.content = normalized ? "[\u00E9]" : "{\u00E9}";
    token.normalized = normalized;
    data.tokens.add(token.content);
    data.types.push_back(TokenType::kControl);
    data.added.push_back(token);
  }
  const Tokenizer t = make(data);
  EXPECT_THAT(encode(t, "[e\u0301]"), ElementsAre(265));
  EXPECT_THAT(encode(t, "{e\u0301}"), ElementsAre('{', 0xC3, 0xA9, '}'));
  EXPECT_THAT(encode(t, "{\u00E9}"), ElementsAre(264));
  // What stands behind a token is not composed with it.
  EXPECT_THAT(encode(t, "<s>\u0301"), ElementsAre(kStart, 0xCC, 0x81));
}

TEST(Tokenizer, TakesWholeWordsWhereTheVocabularyWantsThat) {
  TokenizerData data = small();
  data.tokens.add("hihi");  // no merge makes it
  data.types.push_back(TokenType::kNormal);
  EXPECT_THAT(encode(make(data), "hihi"), ElementsAre(kHi, kHi));
  data.whole_words = true;
  EXPECT_THAT(encode(make(data), "hihi"), ElementsAre(264));
}

TEST(Tokenizer, NeverMakesAControlTokenFromOrdinaryText) {
  TokenizerData data = small();
  data.whole_words = true;
  data.tokens.add("hihi");
  data.types.push_back(TokenType::kControl);
  AddedToken token;
  token.id = 264;
  token.content = "hihi";
  data.added.push_back(token);
  data.merges = {"h i", "hi hi"};
  const Tokenizer t = make(data);
  EXPECT_THAT(encode(t, "hihi", ParseSpecial::kNone), ElementsAre(kHi, kHi));
  EXPECT_THAT(encode(t, "hihi", ParseSpecial::kAll), ElementsAre(264));
}

TEST(Tokenizer, LeavesOutBytesWithoutAToken) {
  const Tokenizer t = make(with_token('x', "?x"));
  EXPECT_THAT(encode(t, "hxi"), ElementsAre(kHi));
  EXPECT_THAT(t.missing_bytes(), ElementsAre('x'));
}

TEST(Tokenizer, EncodesInvalidUtf8ByteForByte) {
  const Tokenizer t = make();
  EXPECT_THAT(encode(t, "\xFF\xE4\xB8hi"), ElementsAre(0xFF, 0xE4, 0xB8, kHi));
}

TEST(Tokenizer, DecodesToBytes) {
  const Tokenizer t = make();
  const Ids ids = {kStart, kHi, kSpaceHi, 0xC3, 0xA9, kByte, kThink, kEnd};
  EXPECT_EQ(t.decode(ids, false).value(), "<s>hi hi\u00E9\n<think><|im_end|>");
  EXPECT_EQ(t.decode(ids, true).value(), "hi hi\u00E9\n<think>");
  EXPECT_EQ(t.piece(kUnused).value(), "[PAD0]");
  EXPECT_EQ(t.piece(' ').value(), " ");
  EXPECT_EQ(t.type(kThink).value(), TokenType::kUserDefined);
}

TEST(Tokenizer, RefusesIdsThatDoNotExist) {
  const Tokenizer t = make();
  for (const std::int32_t id : {-1, 264, 2147483647, -2147483647 - 1}) {
    EXPECT_EQ(t.piece(id).error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(t.decode(Ids{'a', id}, false).error().message(),
              "there is no token " + std::to_string(id) + ": ids go from 0 to 263");
    EXPECT_FALSE(t.is_special(id));
    EXPECT_FALSE(t.type(id).ok());
  }
}

TEST(Tokenizer, EncodesSegmentsAsOneText) {
  const Tokenizer t = make();
  const std::vector<TextSegment> chat = {
      {"<s>h", true}, {"i ", false}, {"", true}, {"hi<|im_end|>", true}};
  EXPECT_THAT(t.encode_segments(chat).value(), ElementsAre(kStart, kHi, kSpaceHi, kEnd));
  EXPECT_THAT(t.encode_segments({}).value(), IsEmpty());
}

TEST(Tokenizer, KeepsTheTextOfAUserOrdinary) {
  const Tokenizer t = make();
  const std::vector<TextSegment> chat = {{"<s>", true}, {"hi<think><s>", false}, {" hi<s>", true}};
  EXPECT_THAT(t.encode_segments(chat).value(), ElementsAre(kStart, kHi, '<', 't', kHi, 'n', 'k',
                                                           '>', '<', 's', '>', kSpaceHi, kStart));
  // Neither does the border between two origins make a token, nor does it hide one.
  const std::vector<TextSegment> border = {{"<s", false}, {"><s>", true}, {"<thi", false}};
  EXPECT_THAT(t.encode_segments(border).value(), ElementsAre('<', 's', '>', kStart, '<', 't', kHi));
}

TEST(Tokenizer, KnowsWhatEndsAnAnswer) {
  TokenizerData data = small();
  data.end_id = kStart;
  data.more_end_ids = {kThink};
  EXPECT_THAT(make(data).end_tokens(), ElementsAre(kStart, kEnd, kThink));
  EXPECT_EQ(make(data).find_added("<think>"), kThink);
  EXPECT_EQ(make(data).find_added("<think"), std::nullopt);
}

TEST(Tokenizer, RefusesAnUnknownPreTokenizerByName) {
  TokenizerData data = small();
  data.pre = "jais-9";
  EXPECT_THAT(refusal(data), HasSubstr("'jais-9' is not supported"));
}

TEST(Tokenizer, RefusesAWrongNumberOfTypes) {
  TokenizerData data = small();
  data.types.pop_back();
  EXPECT_THAT(refusal(data), HasSubstr("263 token types for 264 tokens"));
}

TEST(Tokenizer, RefusesIdsOutsideOfTheVocabulary) {
  TokenizerData data = small();
  data.end_id = 264;
  EXPECT_THAT(refusal(data), HasSubstr("the end token has the id 264, but ids go from 0 to 263"));
  data = small();
  data.added[1].id = -1;
  EXPECT_THAT(refusal(data), HasSubstr("'<|im_end|>' has the id -1"));
}

TEST(Tokenizer, RefusesMisspelledByteTokens) {
  for (const std::string_view name : {"<0x-1>", "<0xG0>", "<0x100>", "", "<0x0>"}) {
    EXPECT_THAT(refusal(with_token(kByte, name)), HasSubstr("token 262 is a byte token")) << name;
  }
  EXPECT_EQ(make(with_token(kByte, "<0xff>")).piece(kByte).value(), "\xFF");
}

TEST(Tokenizer, RefusesDamagedMergesByNumber) {
  TokenizerData data = small();
  for (const std::string_view merge : {"hi", "", " i", "h "}) {
    data.merges = {"h i", merge};
    EXPECT_THAT(refusal(data), HasSubstr("merge 1 ('")) << merge;
  }
  data.merges = {"h i", "h zz"};
  EXPECT_THAT(refusal(data), HasSubstr("merge 1 ('h zz') names 'zz', which is no token"));
  data.merges = {"i h"};
  EXPECT_THAT(refusal(data), HasSubstr("merge 0 ('i h') makes 'ih', which is no token"));
}

TEST(Tokenizer, RefusesEmptyAndEndlessAddedTokens) {
  TokenizerData data = with_token(kThink, "");
  data.added[2].content = "";
  EXPECT_THAT(refusal(data), HasSubstr("added token 260 has an empty content"));
  const std::string endless(1025, 'a');
  data = with_token(kThink, endless);
  data.added[2].content = endless;
  EXPECT_THAT(refusal(data), HasSubstr("at most 1024"));
}

TEST(Tokenizer, RefusesAddedTokensThatContradictTheVocabulary) {
  TokenizerData data = small();
  data.added[0].content = "<S>";
  EXPECT_THAT(refusal(data), HasSubstr("is '<S>' in one place and '<s>' in another"));
  data = small();
  data.added[2].special = true;
  EXPECT_THAT(refusal(data), HasSubstr("added token 260"));
}

TEST(Tokenizer, RefusesAnEmptyVocabularyAndOneWithoutBytes) {
  TokenizerData data;
  data.pre = "gpt-2";
  EXPECT_THAT(refusal(data), HasSubstr("vocabulary is empty"));
  data.tokens = {"hello"};
  data.types = {TokenType::kNormal};
  EXPECT_THAT(refusal(data), HasSubstr("no token for any single byte"));
}

TEST(Tokenizer, RefusesADamagedChatTemplate) {
  TokenizerData data = small();
  data.chat_template = "{{ x }}\xFF";
  EXPECT_THAT(refusal(data), HasSubstr("not valid UTF-8 at byte 7"));
  data.chat_template.assign(1024 * 1024 + 1, 'x');
  EXPECT_THAT(refusal(data), HasSubstr("1048577 bytes"));
}

TEST(Tokenizer, MayBeUsedFromManyThreads) {
  const Tokenizer t = make();
  const Ids expected = encode(t, "<s>hi hi <think>");
  std::vector<std::jthread> threads;
  std::vector<int> equal(4, 0);
  for (std::size_t n = 0; n < equal.size(); ++n) {
    threads.emplace_back([&, n] {
      for (int i = 0; i < 200; ++i) equal[n] += encode(t, "<s>hi hi <think>") == expected ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_THAT(equal, ElementsAre(200, 200, 200, 200));
}

TEST(ByteLevel, SpellsEveryByteAndBack) {
  EXPECT_EQ(spell_bytes(" the\n"), "\u0120the\u010A");
  EXPECT_EQ(spell_bytes(std::string_view("\0\x7F\xAD", 3)), "\u0100\u0121\u0143");
  for (int b = 0; b < 256; ++b) {
    const std::string byte(1, static_cast<char>(b));
    EXPECT_EQ(unspell_bytes(spell_bytes(byte)), byte);
  }
  EXPECT_EQ(unspell_bytes("a b"), std::nullopt);
  EXPECT_EQ(unspell_bytes("\u0144"), std::nullopt);
  EXPECT_EQ(unspell_bytes("\u4E2D"), std::nullopt);
}

TEST(StringIndex, FindsStringsAndKeepsTheFirstOfEqualOnes) {
  const StringTable table = {"a", "", "bc", "a"};
  EXPECT_EQ(table.size(), 4U);
  EXPECT_EQ(table[2], "bc");
  EXPECT_EQ(table[1], "");
  const std::array<std::int32_t, 3> numbers = {3, 0, 2};
  const StringIndex index(table, numbers);
  EXPECT_EQ(index.find(table, "a"), 0);
  EXPECT_EQ(index.find(table, "bc"), 2);
  EXPECT_EQ(index.find(table, ""), std::nullopt);
  EXPECT_EQ(index.first_duplicate(), 3);
  EXPECT_EQ(StringIndex().find(table, "a"), std::nullopt);
  EXPECT_EQ(StringIndex(table, {}).first_duplicate(), std::nullopt);
}

// So many that some of them share a hash of 32 bits.
TEST(StringIndex, FindsEachOfManyStrings) {
  StringTable table;
  std::vector<std::int32_t> numbers;
  for (std::int32_t i = 0; i < 300000; ++i) {
    table.add("word" + std::to_string(i));
    numbers.push_back(i);
  }
  const StringIndex index(table, numbers);
  for (const std::int32_t i : numbers) {
    ASSERT_EQ(index.find(table, "word" + std::to_string(i)), i);
    ASSERT_EQ(index.find(table, "none" + std::to_string(i)), std::nullopt);
  }
}

}  // namespace
}  // namespace tern::text
