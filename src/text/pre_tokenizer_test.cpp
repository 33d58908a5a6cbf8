#include "text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <vector>

namespace tern::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> pieces(std::string_view name, std::string_view text) {
  std::vector<std::string> found;
  for_each_piece(*find_pre_tokenizer(name).value(), text,
                 [&](std::string_view piece) { found.emplace_back(piece); });
  return found;
}

TEST(PreTokenizer, RefusesAnUnknownNameAndListsTheOthers) {
  const auto found = find_pre_tokenizer("kimi-k9");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(found.error().what(), HasSubstr("'kimi-k9'"));
  EXPECT_THAT(found.error().what(), HasSubstr("llama-bpe"));
  EXPECT_FALSE(find_pre_tokenizer("").ok());
  EXPECT_FALSE(find_pre_tokenizer("qwen").ok());
}

TEST(PreTokenizer, KnowsWhatBelongsToEachName) {
  EXPECT_TRUE(find_pre_tokenizer("qwen2").value()->normalizes_nfc);
  EXPECT_TRUE(find_pre_tokenizer("qwen35").value()->normalizes_nfc);
  EXPECT_FALSE(find_pre_tokenizer("llama-bpe").value()->normalizes_nfc);
  EXPECT_TRUE(find_pre_tokenizer("llama-bpe").value()->whole_words);
  EXPECT_FALSE(find_pre_tokenizer("smollm").value()->whole_words);
}

TEST(SplitGpt2, TakesOneSpaceAlong) {
  EXPECT_THAT(pieces("gpt-2", "Hello  world 123!? x"),
              ElementsAre("Hello", " ", " world", " 123", "!?", " x"));
  EXPECT_THAT(pieces("gpt-2", "a\n\n b \t"), ElementsAre("a", "\n\n", " b", " \t"));
  EXPECT_THAT(pieces("gpt-2", " \u00A0x"), ElementsAre(" ", "\u00A0", "x"));
  EXPECT_THAT(pieces("gpt-2", ""), IsEmpty());
  EXPECT_THAT(pieces("gpt-2", " "), ElementsAre(" "));
}

TEST(SplitGpt2, KnowsContractionsInSmallLettersOnly) {
  EXPECT_THAT(pieces("gpt-2", "it's we'll I'LL x'ss 'sa"),
              ElementsAre("it", "'s", " we", "'ll", " I", "'", "LL", " x", "'s", "s", " '", "sa"));
}

TEST(SplitLlama3, IgnoresTheCaseOfContractions) {
  EXPECT_THAT(
      pieces("llama-bpe", "it'S We'Ve I'lL 'RE x'\u017F 'r"),
      ElementsAre("it", "'S", " We", "'Ve", " I", "'lL", " '", "RE", " x", "'\u017F", " '", "r"));
  EXPECT_THAT(pieces("llama-bpe", "don\u2019t"), ElementsAre("don", "\u2019t"));
}

TEST(SplitLlama3, GroupsDigitsByThree) {
  EXPECT_THAT(pieces("llama-bpe", "1234567 12"), ElementsAre("123", "456", "7", " ", "12"));
  EXPECT_THAT(pieces("llama-bpe", "1\u0662\u00BD4"), ElementsAre("1\u0662\u00BD", "4"));
  EXPECT_THAT(pieces("qwen2", "123 4"), ElementsAre("1", "2", "3", " ", "4"));
  EXPECT_THAT(pieces("smollm", "a12 34"), ElementsAre("a", "1", "2", " ", "3", "4"));
}

TEST(SplitLlama3, LetsOneCharacterLeadAWord) {
  EXPECT_THAT(pieces("qwen2", "(a ,b\tc\nd"), ElementsAre("(a", " ,", "b", "\tc", "\n", "d"));
  EXPECT_THAT(pieces("qwen2", "\U0001F600\U0001F600x"), ElementsAre("\U0001F600\U0001F600", "x"));
}

TEST(SplitLlama3, EndsPunctuationWithLineBreaks) {
  EXPECT_THAT(pieces("qwen2", "end.\r\n\nnext"), ElementsAre("end", ".\r\n\n", "next"));
  EXPECT_THAT(pieces("qwen2", " !\n x"), ElementsAre(" !\n", " x"));
}

TEST(SplitLlama3, EndsWhiteSpaceAtTheLastLineBreak) {
  EXPECT_THAT(pieces("qwen2", "a  \n \n  b"), ElementsAre("a", "  \n \n", " ", " b"));
  EXPECT_THAT(pieces("qwen2", "a \n"), ElementsAre("a", " \n"));
  EXPECT_THAT(pieces("qwen2", "a   "), ElementsAre("a", "   "));
  EXPECT_THAT(pieces("qwen2", "a\u0085\u00851"), ElementsAre("a", "\u0085", "\u0085", "1"));
}

TEST(SplitQwen35, JoinsMarksToLetters) {
  EXPECT_THAT(pieces("qwen2", "e\u0301x"), ElementsAre("e", "\u0301x"));
  EXPECT_THAT(pieces("qwen35", "e\u0301x"), ElementsAre("e\u0301x"));
  EXPECT_THAT(pieces("qwen35", "!\u0301\u0301 \u0301"), ElementsAre("!\u0301\u0301", " \u0301"));
  EXPECT_THAT(pieces("qwen2", "!\u0301\u0301"), ElementsAre("!\u0301\u0301"));
}

TEST(SplitDefault, CutsPunctuationThenWordsThenDigits) {
  EXPECT_THAT(pieces("default", "Hello, world! 12345"),
              ElementsAre("Hello", ",", " world", "!", " ", "123", "45"));
  EXPECT_THAT(pieces("default", "a<=b it's 1 ~|$_"),
              ElementsAre("a", "<=", "b", " it", "'", "s", " ", "1", " ", "~|$_"));
}

TEST(SplitRules, TreatAnInvalidByteAsASymbol) {
  EXPECT_THAT(pieces("gpt-2", "a\xFF\xE4 b"), ElementsAre("a", "\xFF\xE4", " b"));
  EXPECT_THAT(pieces("qwen2",
                     "a\xFF"
                     "b\xE4\xB8"),
              ElementsAre("a",
                          "\xFF"
                          "b",
                          "\xE4\xB8"));
}

TEST(PreTokenizers, LoseNoByteOfAnyText) {
  std::mt19937 random(1);
  constexpr std::string_view kBytes =
      "ab1 \n\r'sS.$<\xC3\xA9\xCC\x81\xE4\xB8\xAD\xF0\x9F\x98\x80\xFF";
  for (const PreTokenizer& pre : pre_tokenizers()) {
    for (int i = 0; i < 2'000; ++i) {
      std::string text(random() % 20, '\0');
      for (char& c : text) c = kBytes[random() % kBytes.size()];
      std::string joined;
      for_each_piece(pre, text, [&](std::string_view piece) {
        EXPECT_FALSE(piece.empty());
        joined += piece;
      });
      ASSERT_EQ(joined, text) << pre.name;
    }
  }
}

TEST(PreTokenizers, TakeLinearTime) {
  for (const PreTokenizer& pre : pre_tokenizers()) {
    for (const std::string_view part : {"a", " ", "\n ", "'", "1", ".", "\xFF", " \u0301"}) {
      std::string text;
      while (text.size() < 300'000) text += part;
      const std::clock_t start = std::clock();
      std::size_t bytes = 0;
      for_each_piece(pre, text, [&](std::string_view piece) { bytes += piece.size(); });
      EXPECT_EQ(bytes, text.size());
      EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 1.0)
          << pre.name << " " << part;
    }
  }
}

}  // namespace
}  // namespace tern::text
