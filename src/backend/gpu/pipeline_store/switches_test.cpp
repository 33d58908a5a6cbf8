#include "backend/gpu/pipeline_store/switches.h"

#include <gtest/gtest.h>

namespace tern::gpu {
namespace {

TEST(KernelSwitches, DefaultsAndValues) {
  const Switches defaults = parse_switches({}).value();
  EXPECT_EQ(defaults.tiers.size(), kTiers);
  EXPECT_EQ(defaults.cache, cache::Mode::kOn);
  EXPECT_EQ(defaults.self_test, SelfTestMode::kOnce);
  EXPECT_FALSE(defaults.verify);
  const Switches given = parse_switches({"runtime,disk", "ro", "always", "1"}).value();
  EXPECT_EQ(given.tiers, (std::vector<Tier>{Tier::kRuntime, Tier::kDisk}));
  EXPECT_EQ(given.cache, cache::Mode::kReadOnly);
  EXPECT_EQ(given.self_test, SelfTestMode::kAlways);
  EXPECT_TRUE(given.verify);
  EXPECT_EQ(parse_switches({{}, "off", "off", "0"})->cache, cache::Mode::kOff);
}

TEST(KernelSwitches, UnknownWordsAreErrorsThatNameTheVariable) {
  const auto message_of = [](const SwitchStrings& strings) {
    const Result<Switches> switches = parse_switches(strings);
    EXPECT_FALSE(switches.ok());
    if (switches.ok()) return std::string();
    EXPECT_EQ(switches.error().code(), ErrorCode::kUsage);
    return switches.error().message();
  };
  for (const char* tiers : {"", "embeded", "disk,", "disk,disk", " disk", "disk;runtime"}) {
    EXPECT_NE(message_of({tiers, {}, {}, {}}).find("TERN_KERNEL_TIERS"), std::string::npos);
  }
  EXPECT_NE(message_of({{}, "yes", {}, {}}).find("'yes' is not known; expected on, ro or off"),
            std::string::npos);
  EXPECT_NE(message_of({{}, {}, "", {}}).find("TERN_KERNEL_SELFTEST"), std::string::npos);
  EXPECT_NE(message_of({{}, {}, {}, "true"}).find("TERN_KERNEL_VERIFY"), std::string::npos);
}

TEST(KernelSwitches, DiagnosticsAreCutBetweenCharacters) {
  EXPECT_EQ(cut_diagnostics("short"), "short");
  const std::string text = "ab\xC3\xA4\xE2\x82\xAC";  // 2 + 2 + 3 bytes
  EXPECT_EQ(cut_diagnostics(text, 3), "ab\n[5 more bytes]");
  EXPECT_EQ(cut_diagnostics(text, 4), "ab\xC3\xA4\n[3 more bytes]");
  EXPECT_EQ(cut_diagnostics(text, 6), "ab\xC3\xA4\n[3 more bytes]");
  EXPECT_EQ(cut_diagnostics(text, 7), text);
}

}  // namespace
}  // namespace tern::gpu
