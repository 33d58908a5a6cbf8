#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

namespace tern::text {
namespace {

StopMatcher matcher(std::vector<std::string> stops) {
  return StopMatcher::create(std::move(stops)).value();
}

TEST(StopMatcher, RefusesAnEmptyStopString) {
  const auto made = StopMatcher::create({"a", ""});
  ASSERT_FALSE(made.ok());
  EXPECT_STREQ(made.error().what(), "stop string 1 is empty");
}

TEST(StopMatcher, LetsTextPassWithoutStopStrings) {
  StopMatcher m = matcher({});
  EXPECT_EQ(m.push("abc").text, "abc");
  EXPECT_EQ(m.flush().text, "");
}

TEST(StopMatcher, FindsAStopStringAcrossChunks) {
  StopMatcher m = matcher({"</end>"});
  EXPECT_EQ(m.push("Hello <").text, "Hello ");
  EXPECT_EQ(m.push("/en").text, "");
  const StopMatcher::Step step = m.push("d> more");
  EXPECT_EQ(step.text, "");
  EXPECT_EQ(step.stop, 0U);
  EXPECT_EQ(m.push("x").text, "");
  EXPECT_EQ(m.push("x").stop, 0U);
  EXPECT_EQ(m.flush().text, "");
}

TEST(StopMatcher, ShowsWhatItHeldBackWhenItWasNoStopString) {
  StopMatcher m = matcher({"aab"});
  EXPECT_EQ(m.push("a").text, "");
  EXPECT_EQ(m.push("a").text, "");
  EXPECT_EQ(m.push("a").text, "a");  // aa may still be the beginning
  EXPECT_EQ(m.push("c").text, "aac");
  EXPECT_EQ(m.push("xa").text, "x");
  const StopMatcher::Step end = m.flush();
  EXPECT_EQ(end.text, "a");
  EXPECT_FALSE(end.stop.has_value());
}

TEST(StopMatcher, TakesTheEarliestAndThenTheLongest) {
  StopMatcher together = matcher({"bc", "abcd", "a"});
  const StopMatcher::Step step = together.push("xabcdy");
  EXPECT_EQ(step.text, "x");
  EXPECT_EQ(step.stop, 1U);

  // In pieces: bc is complete, but abcd would start before it.
  StopMatcher pieces = matcher({"bc", "abcd"});
  EXPECT_EQ(pieces.push("xabc").text, "x");
  EXPECT_EQ(pieces.push("d").stop, 1U);
  StopMatcher other = matcher({"bc", "abcd"});
  EXPECT_EQ(other.push("xabc").text, "x");
  const StopMatcher::Step found = other.push("e");
  EXPECT_EQ(found.text, "a");
  EXPECT_EQ(found.stop, 0U);
}

TEST(StopMatcher, DecidesAtTheEndOfTheText) {
  StopMatcher m = matcher({"a", "ab"});
  EXPECT_EQ(m.push("xa").text, "x");
  const StopMatcher::Step end = m.flush();
  EXPECT_EQ(end.text, "");
  EXPECT_EQ(end.stop, 0U);
}

TEST(StopMatcher, DoesNotCutACharacter) {
  StopMatcher m = matcher({"\u201C"});           // E2 80 9C
  EXPECT_EQ(m.push("a\u201D").text, "a\u201D");  // E2 80 9D
}

// The definition, on the whole text.
StopMatcher::Step find_in_whole(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < stops.size(); ++i) {
      if (text.compare(at, stops[i].size(), stops[i]) != 0) continue;
      if (!best || stops[i].size() > stops[*best].size()) best = i;
    }
    if (best) return {text.substr(0, at), best};
  }
  return {text, std::nullopt};
}

TEST(StopMatcher, GivesTheSameResultHoweverTheTextIsCut) {
  std::mt19937 random(4);
  const auto word = [&](std::size_t most) {
    std::string w(1 + random() % most, 'a');
    for (char& c : w) c = static_cast<char>('a' + random() % 2);
    return w;
  };
  for (int i = 0; i < 5'000; ++i) {
    std::vector<std::string> stops;
    for (auto n = 1 + random() % 3; n > 0; --n) stops.push_back(word(5));
    const std::string text = word(14);
    StopMatcher m = matcher(stops);
    std::string shown;
    StopMatcher::Step step;
    for (std::size_t at = 0; at < text.size() && !step.stop;) {
      const std::size_t n = 1 + random() % 4;
      step = m.push(std::string_view(text).substr(at, n));
      shown += step.text;
      at += n;
    }
    if (!step.stop) {
      step = m.flush();
      shown += step.text;
    }
    const StopMatcher::Step expected = find_in_whole(text, stops);
    ASSERT_EQ(shown, expected.text) << text << " " << testing::PrintToString(stops);
    ASSERT_EQ(step.stop, expected.stop) << text << " " << testing::PrintToString(stops);
  }
}

TEST(StopMatcher, IsQuickOnAStopStringThatAlmostMatchesEverywhere) {
  StopMatcher m = matcher({std::string(255, 'a') + "b"});
  const std::clock_t start = std::clock();
  std::size_t shown = 0;
  for (int i = 0; i < 100'000; ++i) shown += m.push("aa").text.size();
  EXPECT_EQ(shown, 200'000U - 255U);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2.0);
}

}  // namespace
}  // namespace tern::text
