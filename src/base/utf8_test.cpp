// UTF-8: the tables of the Unicode standard, all code points, all short sequences.
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <vector>

namespace tern {
namespace {

TEST(Utf8, EveryCodePointSurvivesTheRoundTrip) {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    std::string text;
    append_utf8(text, c);
    const DecodedUtf8 step = decode_utf8(text);
    ASSERT_TRUE(step.valid) << static_cast<std::uint32_t>(c);
    ASSERT_EQ(step.code_point, c);
    ASSERT_EQ(step.length, text.size());
    ASSERT_EQ(text.size(), c < 0x80 ? 1u : c < 0x800 ? 2u : c < 0x10000 ? 3u : 4u);
    ASSERT_FALSE(find_invalid_utf8(text));
  }
}

TEST(Utf8, EncodesKnownCharacters) {
  std::string text;
  for (const char32_t c : {U'A', U'\u00e9', U'\u20ac', U'\U0001f600'}) append_utf8(text, c);
  EXPECT_EQ(text, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(Utf8, EncodesWhatIsNoCharacterAsTheReplacement) {
  for (const char32_t c : {char32_t{0xd800}, char32_t{0xdfff}, char32_t{0x110000}}) {
    std::string text;
    append_utf8(text, c);
    EXPECT_EQ(text, "\xef\xbf\xbd");
  }
}

TEST(Utf8, AcceptsExactlyTheWellFormedSequences) {
  // Every sequence of one to three bytes, by the definition: decode the bits, then ask whether the
  // value needs that length.
  std::size_t accepted = 0;
  for (std::uint32_t v = 0; v < (1u << 24); ++v) {
    const std::uint32_t a = v & 0xff;
    const std::uint32_t b = (v >> 8) & 0xff;
    const std::uint32_t c = v >> 16;
    if (a < 0xe0 || a >= 0xf0) continue;
    const bool has_form = (b & 0xc0) == 0x80 && (c & 0xc0) == 0x80;
    const std::uint32_t value = ((a & 0xf) << 12) | ((b & 0x3f) << 6) | (c & 0x3f);
    const bool is_valid = has_form && value >= 0x800 && (value < 0xd800 || value > 0xdfff);
    const char text[] = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
    ASSERT_EQ(!find_invalid_utf8(std::string_view(text, 3)), is_valid) << v;
    if (is_valid) ++accepted;
  }
  EXPECT_EQ(accepted, 0x10000u - 0x800u - 0x800u);
  for (std::uint32_t v = 0; v < (1u << 16); ++v) {
    const std::uint32_t a = v & 0xff;
    const std::uint32_t b = v >> 8;
    const bool is_valid = (a < 0x80 && b < 0x80) || (a >= 0xc2 && a < 0xe0 && (b & 0xc0) == 0x80);
    const char text[] = {static_cast<char>(a), static_cast<char>(b)};
    ASSERT_EQ(!find_invalid_utf8(std::string_view(text, 2)), is_valid) << v;
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndTooLargeValues) {
  for (const char* text :
       {"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xfe", "\x80", "\xc3", "\xe2\x82"}) {
    EXPECT_EQ(find_invalid_utf8(text), 0u) << escape_for_message(text);
  }
  EXPECT_FALSE(find_invalid_utf8("\xf4\x8f\xbf\xbf"));
  EXPECT_FALSE(find_invalid_utf8("\xed\x9f\xbf"));
  EXPECT_FALSE(find_invalid_utf8("\xee\x80\x80"));
}

TEST(Utf8, FindsTheFirstInvalidByte) {
  EXPECT_EQ(find_invalid_utf8("ab\xc3\xa9\xff"), 4u);
  EXPECT_EQ(find_invalid_utf8("\xe2\x82"), 0u);
  EXPECT_EQ(find_invalid_utf8("abc\xe2\x82"), 3u);
  EXPECT_FALSE(find_invalid_utf8(""));
  EXPECT_FALSE(find_invalid_utf8(std::string_view("a\0b", 3)));
}

std::vector<std::uint32_t> decode_all(std::string_view text) {
  std::vector<std::uint32_t> result;
  while (!text.empty()) {
    const DecodedUtf8 step = decode_utf8(text);
    result.push_back(step.code_point);
    text.remove_prefix(step.length);
  }
  return result;
}

TEST(Utf8, ReplacesMaximalSubpartsAsTheStandardDoes) {
  using V = std::vector<std::uint32_t>;
  constexpr std::uint32_t R = 0xfffd;
  // Tables 3-8 to 3-11 of the Unicode standard, chapter 3.9.
  EXPECT_EQ(decode_all("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"), (V{R, R, R, R, R, R, R, R, 0x41}));
  EXPECT_EQ(decode_all("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"), (V{R, R, R, R, R, R, R, R, 0x41}));
  EXPECT_EQ(decode_all("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"),
            (V{R, R, R, R, R, 0x41, R, R, 0x42}));
  EXPECT_EQ(decode_all("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), (V{R, R, R, R, 0x41}));
  EXPECT_EQ(replace_invalid_utf8("a\xe1\x80\xe2z"), "a\xef\xbf\xbd\xef\xbf\xbdz");
}

TEST(Utf8, TellsWhatMoreBytesCouldComplete) {
  EXPECT_EQ(incomplete_utf8_suffix(""), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("abc"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xc3"), 1u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xc3\xa9"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\xe2\x82"), 2u);
  EXPECT_EQ(incomplete_utf8_suffix("\xf0\x9f\x98"), 3u);
  EXPECT_EQ(incomplete_utf8_suffix("\xf0\x9f\x98\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\x80\x80\x80"), 0u);  // no lead byte
  EXPECT_EQ(incomplete_utf8_suffix("\xed\xa0"), 0u);      // can only become a surrogate
  EXPECT_EQ(incomplete_utf8_suffix("\xff"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\xe2\x82\x80\x80"), 0u);
}

TEST(EscapeForMessage, ShowsControlsAndInvalidBytes) {
  EXPECT_EQ(escape_for_message("plain caf\xc3\xa9"), "plain caf\xc3\xa9");
  EXPECT_EQ(escape_for_message("a\nb\t\r\\"), "a\\nb\\t\\r\\\\");
  EXPECT_EQ(escape_for_message(std::string_view("\0\x1b[31m\x7f", 7)), "\\x00\\x1b[31m\\x7f");
  EXPECT_EQ(escape_for_message("\xff\xe2\x82"), "\\xff\\xe2\\x82");
  EXPECT_EQ(escape_for_message("\xc2\x85"), "\\xc2\\x85");           // NEL, a C1 control
  EXPECT_EQ(escape_for_message("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // turns the text around
  EXPECT_EQ(escape_for_message("\xef\xbf\xbd"), "\xef\xbf\xbd");     // a real U+FFFD is a character
}

TEST(EscapeForMessage, CutsAfter64BytesBetweenCharacters) {
  const std::string exact(64, 'x');
  EXPECT_EQ(escape_for_message(exact), exact);
  EXPECT_EQ(escape_for_message(exact + "y"), exact + "...");
  const std::string odd = std::string(63, 'x') + "\xc3\xa9";
  EXPECT_EQ(escape_for_message(odd), std::string(63, 'x') + "...");
  EXPECT_EQ(escape_for_message("abcdef", 3), "abc...");
}

}  // namespace
}  // namespace tern
