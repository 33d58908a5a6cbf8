#include "backend/cache/key.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace tern::cache {
namespace {

struct TableKey {
  std::string device;
  std::string driver;
};
template <class Visit>
void visit_key_fields(const TableKey& fields, Visit&& visit) {
  const auto& [device, driver] = fields;
  visit("device", device);
  visit("driver", driver);
}

TEST(CacheKey, TextIsSortedAndNamesTheFormat) {
  const Key key = *Key::from_lines("cuda", "sm_90a", {{"target", "sm_90a"}, {"driver", "580.1"}});
  EXPECT_EQ(key.text(), "driver=580.1\nformat=1\ntarget=sm_90a\n");
  EXPECT_EQ(key.hash(), sha256_hex(key.text()));
  EXPECT_EQ(key.stem(), key.hash().substr(0, 40));
  EXPECT_EQ(key.fan(), key.hash().substr(0, 2));
}

TEST(CacheKey, ValuesCannotPretendToBeLines) {
  const std::string value = std::string("a\nb=c\r\\\0", 8) + "\xC3\xA4\xFF";
  const Key key = *Key::from_lines("cpu", "any", {{"flags", value}});
  EXPECT_EQ(key.text(), "flags=a\\nb=c\\r\\\\\\0\xC3\xA4\\xFF\nformat=1\n");
  EXPECT_EQ(value_of_line(key.text(), "flags"), value);
  EXPECT_EQ(value_of_line(key.text(), "b"), "");
}

TEST(CacheKey, NamesAreChecked) {
  EXPECT_FALSE(Key::from_lines("cpu", "a", {{"Driver", "1"}}).ok());
  EXPECT_FALSE(Key::from_lines("cpu", "a", {{"", "1"}}).ok());
  EXPECT_FALSE(Key::from_lines("cpu", "a", {{"format", "2"}}).ok());
  EXPECT_FALSE(Key::from_lines("cpu", "a", {{"a", "1"}, {"a", "1"}}).ok());
  EXPECT_FALSE(Key::from_lines("cpu", "a", {{"a", std::string(kMostKeyBytes, 'x')}}).ok());
}

TEST(CacheKey, FoldersCannotLeadElsewhere) {
  const Key key = *Key::from_lines("..", "../../etc/x y", {});
  EXPECT_EQ(key.backend(), "_..");
  EXPECT_EQ(key.architecture(), "_.._.._etc_x_y");
  EXPECT_EQ(Key::from_lines("cuda", "", {})->architecture(), "_");
}

// A table of measurements names version, driver and system, and is found by all of them only.
TEST(CacheKey, W24_ATableBelongsToItsDriverAndBuild) {
  std::vector<KeyLine> lines = {
      {"device", "zen"}, {"driver", "1"}, {"os", "12"}, {"tern", "1.0"}, {"opset", "3"}};
  const std::string text = Key::from_lines("cpu", "zen", lines)->text();
  for (KeyLine& line : lines) {
    const std::string before = line.value;
    line.value += "x";
    EXPECT_NE(Key::from_lines("cpu", "zen", lines)->text(), text) << line.name;
    line.value = before;
  }
  EXPECT_EQ(Key::from_lines("cpu", "zen", lines)->text(), text);
}

TEST(CacheKey, AClosedStructBecomesLines) {
  const Key key = *make_key("cpu", "zen", TableKey{"d", "r"});
  EXPECT_EQ(key.text(), "device=d\ndriver=r\nformat=1\n");
  const Key more = *key.with({{"selftest", "3"}});
  EXPECT_EQ(more.text(), "device=d\ndriver=r\nformat=1\nselftest=3\n");
  EXPECT_NE(more.hash(), key.hash());
  EXPECT_FALSE(key.with({{"driver", "x"}}).ok());
}

}  // namespace
}  // namespace tern::cache
