#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"

namespace tern::text {
namespace {

constexpr const char* kBad = "\uFFFD";

TEST(Utf8Stream, HoldsBackAnUnfinishedCharacter) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xF0"), "a");
  EXPECT_EQ(stream.push("\x9F"), "");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x80z"), "\U0001F600z");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, ReplacesWhatCanNoLongerBecomeACharacterAtOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xE4\xB8"), "");
  EXPECT_EQ(stream.push("x"), std::string(kBad) + "x");
  EXPECT_EQ(stream.push("\xFF"), kBad);
  EXPECT_EQ(stream.push("\x80"), kBad);
  EXPECT_EQ(stream.push("\xC0\xAF"), std::string(kBad) + kBad);  // overlong
  EXPECT_EQ(stream.push("\xF4\x90"), std::string(kBad) + kBad);  // above U+10FFFF
}

TEST(Utf8Stream, GivesOneReplacementForWhatIsLeftAtTheEnd) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.flush(), kBad);
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(stream.push("ok"), "ok");
}

TEST(Utf8Stream, WaitsForAllOfASurrogate) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xED"), "");
  EXPECT_EQ(stream.push("\xA0"), "");
  EXPECT_EQ(stream.push("\x80"), std::string(kBad) + kBad + kBad);
  EXPECT_EQ(stream.push("\xED\xA0"), "");
  EXPECT_EQ(stream.push("a"), std::string(kBad) + kBad + "a");
  EXPECT_EQ(stream.push("\xED\xBF"), "");
  EXPECT_EQ(stream.flush(), std::string(kBad) + kBad);
}

TEST(Utf8Stream, GivesTheSameTextHoweverTheBytesAreCut) {
  std::mt19937 random(2);
  constexpr std::string_view kBytes = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\xED\xA0\xFF\xF4\x90";
  for (int i = 0; i < 3'000; ++i) {
    std::string bytes(random() % 16, '\0');
    for (char& c : bytes) c = kBytes[random() % kBytes.size()];
    Utf8Stream stream;
    std::string text;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = std::min<std::size_t>(1 + random() % 4, bytes.size() - at);
      const std::string chunk = stream.push(std::string_view(bytes).substr(at, n));
      EXPECT_FALSE(find_invalid_utf8(chunk).has_value());
      text += chunk;
      at += n;
    }
    text += stream.flush();
    ASSERT_EQ(text, replace_invalid_utf8(bytes)) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace tern::text
