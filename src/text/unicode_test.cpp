#include "text/unicode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <vector>

namespace tern::text {
namespace {

using testing::ElementsAre;

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

void expect_class(CharClass expected, std::u32string_view characters) {
  for (const char32_t c : characters) {
    EXPECT_EQ(char_class(c), expected) << std::hex << static_cast<unsigned>(c);
  }
}

TEST(CharClass, KnowsTheClassesOfUnicode15) {
  expect_class(CharClass::kLetter, U"aZ\u00E9\u0410\u4E2D\uAC00\u02B0\u01C5\U0001D400");
  expect_class(CharClass::kNumber, U"07\u00BD\u0661\u2167\u3007\U0001F100");
  expect_class(CharClass::kMark, U"\u0301\u093E\u20DD\U000E0100");
  expect_class(CharClass::kPunctuation, U"!_-\u00AB\u2019\u3002\u00A1");
  expect_class(CharClass::kOther,
               U"$+<=>^`|~\u00A9\u20AC\U0001F600\u200B\u180E\x1C\x7F\uFEFF\uFFFD\uE000");
}

TEST(CharClass, KnowsWhatUnicode15_1And16Added) {
  EXPECT_EQ(char_class(0x2EBF0), CharClass::kLetter);  // CJK extension I, 15.1
  EXPECT_EQ(char_class(0x2EE5D), CharClass::kLetter);
  EXPECT_EQ(char_class(0x2EE5E), CharClass::kOther);
  EXPECT_EQ(char_class(0x105C0), CharClass::kLetter);  // Todhri
  EXPECT_EQ(char_class(0x10D40), CharClass::kNumber);  // Garay digit zero
  EXPECT_EQ(char_class(0x10D69), CharClass::kMark);
  EXPECT_EQ(char_class(0x1E5FF), CharClass::kPunctuation);
  EXPECT_EQ(char_class(0x0897), CharClass::kMark);
  EXPECT_EQ(char_class(0xA7CB), CharClass::kLetter);
  EXPECT_EQ(char_class(0x1CCD6), CharClass::kOther);  // outlined capital A: a symbol
  EXPECT_EQ(char_class(0x1138A), CharClass::kOther);  // a gap in Tulu-Tigalari
}

TEST(CharClass, HasExactlyThese25SpaceCharacters) {
  std::vector<char32_t> spaces;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (char_class(c) == CharClass::kSpace) spaces.push_back(c);
  }
  EXPECT_THAT(spaces, ElementsAre(0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2000,
                                  0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008,
                                  0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000));
}

TEST(CharAt, TakesEachInvalidByteForACharacterOfItsOwn) {
  const std::string_view text = "\xE4\xB8\xADx\xE4\xB8\xED\xA0\x80";
  EXPECT_EQ(char_at(text, 0).code, 0x4E2DU);
  EXPECT_EQ(char_at(text, 0).length, 3);
  for (const std::size_t at :
       std::initializer_list<std::size_t>{4, 5, 6, 7, 8}) {  // a cut character, and a surrogate
    EXPECT_EQ(char_at(text, at).length, 1) << at;
    EXPECT_EQ(char_at(text, at).kind, CharClass::kOther) << at;
  }
}

TEST(Nfc, ComposesAndPutsMarksInOrder) {
  EXPECT_EQ(nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(nfc("re\u0301sume\u0301"), "r\u00E9sum\u00E9");
  EXPECT_EQ(nfc("a\u0301\u0316"), "\u00E1\u0316");  // 220 before 230, then composed
  EXPECT_EQ(nfc("a\u0315\u0301"), "\u00E1\u0315");  // 232 stands behind 230
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "\uAC01");   // Hangul
  EXPECT_EQ(nfc("\u212B"), "\u00C5");               // a singleton
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");         // excluded from composition
  EXPECT_EQ(nfc("\u0344"), "\u0308\u0301");         // and without a letter
  EXPECT_EQ(nfc("\u1E9B\u0323"), "\u1E9B\u0323");   // the standard's own example
  EXPECT_EQ(nfc("\u00E9\u4E2D \U0001F600"), "\u00E9\u4E2D \U0001F600");
}

TEST(Nfc, LeavesASimpleTextWhereItIs) {
  std::string storage;
  const std::string_view text = "caf\u00E9, 12 \xFF";
  EXPECT_EQ(to_nfc(text.substr(0, 9), storage).data(), text.data());
  EXPECT_EQ(nfc(""), "");
}

TEST(Nfc, DoesWhatHuggingFaceDoesWithLaterCharacters) {
  EXPECT_EQ(nfc("\U000105D2\u0307"), "\U000105D2\u0307");          // Unicode 16 composes these
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");  // and Unicode 13 these
  EXPECT_EQ(nfc("a\u1DF8\u0301"), "a\u1DF8\u0301");  // a mark of Unicode 10 bars the way
}

TEST(Nfc, KeepsInvalidBytesAndNormalizesBetweenThem) {
  EXPECT_EQ(nfc("\xFF"
                "e\u0301\xE4\xB8"
                "e\u0301\xCC"),
            "\xFF\u00E9\xE4\xB8\u00E9\xCC");
  EXPECT_EQ(nfc("e\xCC\x81"), "\u00E9");
  EXPECT_EQ(nfc("e\x81\xCC\x81"), "e\x81\u0301");
  EXPECT_EQ(nfc("\xED\xA0\x80\u0301"), "\xED\xA0\x80\u0301");
}

TEST(Nfc, SortsAMillionBytesOfMarksQuickly) {
  // In the worst order for a sort that swaps neighbours.
  std::string text = "a";
  for (int i = 0; i < 250'000; ++i) text += "\u0301";
  for (int i = 0; i < 250'000; ++i) text += "\u0316";
  const std::clock_t start = std::clock();
  const std::string normal = nfc(text);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  // a and the first U+0301 compose: one character of two bytes for two of three.
  EXPECT_EQ(normal.size(), text.size() - 1);
  EXPECT_EQ(normal.substr(0, 4), "\u00E1\u0316");
  EXPECT_LT(seconds, 2.0);
}

}  // namespace
}  // namespace tern::text
