// Properties of the published tokenizers: bytes survive the way there and back, and no text is
// slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <random>
#include <set>

#include "golden_data.h"
#include "text/unicode.h"

namespace tern::text {
namespace {

using Ids = std::vector<std::int32_t>;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = ParseSpecial::kNone};

class PublishedTokenizer : public testing::TestWithParam<const char*> {
 protected:
  const Tokenizer tokenizer_ = golden_tokenizer(GetParam());

  // What decoding must give back: the NFC where the tokenizer normalises, and without bytes that
  // have no token.
  [[nodiscard]] std::string expected(const std::string& bytes) const {
    std::string storage;
    const std::string normal(tokenizer_.normalizes_nfc() ? to_nfc(bytes, storage)
                                                         : std::string_view(bytes));
    std::string kept;
    for (const char c : normal) {
      if (!missing_.contains(static_cast<unsigned char>(c))) kept += c;
    }
    return kept;
  }
  void expect_round_trip(const std::string& bytes) const {
    const Ids ids = tokenizer_.encode(bytes, kPlain).value();
    ASSERT_EQ(tokenizer_.decode(ids, false).value(), expected(bytes))
        << testing::PrintToString(bytes);
  }

  const std::set<int> missing_ = [this] {
    const auto bytes = tokenizer_.missing_bytes();
    return std::set<int>(bytes.begin(), bytes.end());
  }();
};

std::string name_of(const testing::TestParamInfo<const char*>& tested) {
  std::string name;
  for (const char c : std::string(tested.param)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Published, PublishedTokenizer,
                         testing::Values("smollm2", "qwen3", "gpt-2", "llama-bpe", "qwen35"),
                         name_of);

// One test for all, since reading a vocabulary takes longer than using it.
TEST_P(PublishedTokenizer, GivesBackTheBytesOfAnyText) {
  for (int a = 0; a < 256; ++a) {
    expect_round_trip({static_cast<char>(a)});
    for (int b = 0; b < 256; ++b) {
      expect_round_trip({static_cast<char>(a), static_cast<char>(b)});
    }
  }
  std::mt19937 random(5);
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    expect_round_trip(bytes);
  }
  // Letters, white space, digits, marks, Hangul, ideographs, emoji, and cut-off sequences of them.
  constexpr std::array<std::string_view, 20> kParts = {
      "a",        "Z",      " ",      "\n",           "\r\n",   "7",          "'s",
      "e\u0301",  "\u0316", "\uAC00", "\u1100\u1161", "\u4E2D", "\U0001F600", "\xE4\xB8",
      "\xF0\x9F", "\xC3",   "\u00A0", "\u0661",       "!?",     "<|im_end|>"};
  for (int i = 0; i < 10'000; ++i) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += kParts[random() % kParts.size()];
    expect_round_trip(text);
  }
}

// Processor time, so that a busy machine does not fail the test.
double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  const std::clock_t start = std::clock();
  const auto ids =
      tokenizer.encode(text, {.add_special = false, .parse_special = ParseSpecial::kAll});
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_FALSE(ids.value().empty());
  return seconds;
}

// A megabyte takes at most two seconds, whatever it consists of; sanitizers and builds with assertions get five.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr double kSecondsPerMegabyte = 5;
#elif defined(__has_feature)
constexpr double kSecondsPerMegabyte =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ? 5 : 2;
#else
constexpr double kSecondsPerMegabyte = 2;
#endif

TEST_P(PublishedTokenizer, IsSlowOnNoText) {
  EXPECT_LT(seconds_to_encode(tokenizer_, std::string(1'000'000, 'a')), kSecondsPerMegabyte);
  std::mt19937 random(7);
  std::string word(26'000, '\0');
  for (char& c : word) c = static_cast<char>('a' + random() % 26);
  EXPECT_LT(seconds_to_encode(tokenizer_, word), 0.1 * kSecondsPerMegabyte);
  constexpr std::size_t kBytes = 100'000;
  for (const std::string_view part :
       {" ", "\n", "\n ", "<", "<|im_", "'", "1", "=", "\u0316\u0301", "\u4E2D", "\u1100\u1161",
        "\xE4", "\xF0\x9F\x98", "ab", "<|endoftext|>"}) {
    std::string text;
    while (text.size() < kBytes) text += part;
    EXPECT_LT(seconds_to_encode(tokenizer_, text), 0.2 * kSecondsPerMegabyte) << part;
  }
}

TEST(PublishedTokenizers, KnowWhichBytesTheyCannotEncode) {
  EXPECT_THAT(golden_tokenizer("smollm2").missing_bytes(),
              ElementsAre(0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xC0, 0xC1, 0xF1, 0xF2, 0xF5, 0xF6,
                          0xF7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF));
  EXPECT_THAT(golden_tokenizer("qwen3").missing_bytes(), IsEmpty());
}

TEST(PublishedTokenizers, KnowWhichTokensEndAnAnswer) {
  EXPECT_THAT(golden_tokenizer("qwen3").end_tokens(), ElementsAre(151643, 151645));
  EXPECT_THAT(golden_tokenizer("smollm2").end_tokens(), ElementsAre(0, 2));
  EXPECT_THAT(golden_tokenizer("llama-bpe").end_tokens(), ElementsAre(128001, 128009));
  EXPECT_THAT(golden_tokenizer("gpt-2").end_tokens(), ElementsAre(50256));
}

TEST(PublishedTokenizers, AddTheBeginTokenThatTheFileAsksFor) {
  const EncodeOptions options{.add_special = true, .parse_special = ParseSpecial::kNone};
  EXPECT_THAT(golden_tokenizer("llama-bpe").encode("", options).value(), ElementsAre(128000));
  EXPECT_THAT(golden_tokenizer("qwen3").encode("", options).value(), IsEmpty());
  EXPECT_THAT(golden_tokenizer("qwen35").encode("", options).value(), IsEmpty());
  EXPECT_THAT(golden_tokenizer("smollm2").encode("", options).value(), IsEmpty());
}

std::vector<TextSegment> qwen3_turn(const std::string& user) {
  return {
      {"<|im_start|>user\n", true}, {user, false}, {"<|im_end|>\n<|im_start|>assistant\n", true}};
}

TEST(PublishedTokenizers, EncodeAChatAcrossTheBordersOfItsSegments) {
  const Tokenizer qwen3 = golden_tokenizer("qwen3");
  // The line break of the template and that of the user are one token, 271.
  EXPECT_THAT(qwen3.encode_segments(qwen3_turn("\nHello")).value(),
              ElementsAre(151644, 872, 271, 9707, 151645, 198, 151644, 77091, 198));
}

TEST(PublishedTokenizers, NeverTakeTheTextOfAUserForATokenOfTheTemplate) {
  const Tokenizer qwen3 = golden_tokenizer("qwen3");
  const Ids end_as_text = qwen3.encode("<|im_end|>", kPlain).value();
  EXPECT_GT(end_as_text.size(), 1U);
  Ids expected = {151644, 872, 198};
  for (int i = 0; i < 2; ++i)
    expected.insert(expected.end(), end_as_text.begin(), end_as_text.end());
  for (const int id : {151645, 198, 151644, 77091, 198}) expected.push_back(id);
  EXPECT_EQ(qwen3.encode_segments(qwen3_turn("<|im_end|><|im_end|>")).value(), expected);
  // Nor does a token come to be where a user's text and the template's meet.
  const std::vector<TextSegment> meeting = {{"<|im_", false}, {"end|>", true}};
  EXPECT_EQ(qwen3.encode_segments(meeting).value(), end_as_text);
  // A token that the template writes in parts is one.
  const std::vector<TextSegment> parts = {{"<|im_", true}, {"end|>", true}};
  EXPECT_THAT(qwen3.encode_segments(parts).value(), ElementsAre(151645));
}

}  // namespace
}  // namespace tern::text
