#include "backend/cache/location.h"

#include <gtest/gtest.h>

namespace tern::cache {
namespace {

#if defined(__APPLE__)
constexpr const char* kBelowHome = "/Library/Caches";
#else
constexpr const char* kBelowHome = "/.cache";
#endif

std::string path_of(const LocationStrings& strings) {
  const std::optional<Base> base = choose_base(strings).value();
  return base ? base->path : "none";
}

TEST(EntryCache, BaseIsTheFirstThatIsSet) {
  EXPECT_EQ(path_of({"/a/", "/b", "/c", "/d"}), "/a");
  EXPECT_TRUE((*choose_base({"/a", {}, {}, {}}))->is_explicit);
  EXPECT_EQ(path_of({{}, "/b", "/c", "/d"}), "/b");
  EXPECT_EQ(path_of({{}, {}, "/c", "/d"}), std::string("/c") + kBelowHome);
  EXPECT_EQ((*choose_base({{}, {}, "/c", {}}))->owner_of_home, "/c");
  EXPECT_EQ(path_of({{}, {}, "/", {}}), kBelowHome);
}

// HOME unset, empty or relative: the user database; without one no disk tier.
TEST(EntryCache, Ps14_HomeThatIsNoneIsReplaced) {
  for (const std::optional<std::string>& home :
       {std::optional<std::string>(), std::optional<std::string>(""),
        std::optional<std::string>("relative"), std::optional<std::string>(".")}) {
    EXPECT_EQ(path_of({{}, {}, home, "/database"}), std::string("/database") + kBelowHome);
    EXPECT_EQ(path_of({{}, {}, home, {}}), "none");
    EXPECT_EQ(path_of({{}, {}, home, "also/relative"}), "none");
  }
}

// Nothing is ever written relative to the current folder.
TEST(EntryCache, Ps43_NoBaseIsRelative) {
  EXPECT_EQ(path_of({{}, "", "", "/h"}), std::string("/h") + kBelowHome);
  EXPECT_EQ(path_of({{}, "cache", "", "/h"}), std::string("/h") + kBelowHome);
  EXPECT_EQ(path_of({{}, "./x", "", ""}), "none");
  for (const char* given : {"", "cache", "./cache", "~/cache"}) {
    const auto base = choose_base({given, "/b", "/c", "/d"});
    ASSERT_FALSE(base.ok()) << given;
    EXPECT_EQ(base.error().code(), ErrorCode::kUsage);
    EXPECT_NE(base.error().message().find("TERN_CACHE_DIR"), std::string::npos);
  }
}

}  // namespace
}  // namespace tern::cache
