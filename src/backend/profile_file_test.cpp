// Profiles: those that ship, and texts that are none.
#include "backend/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tern::backend {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

TEST(ProfileFile, WhatShipsIsWhole) {
  EXPECT_THAT(shipped_profiles(), IsSupersetOf({"h200", "rtx4090", "m4-pro"}));
  for (std::string_view name : shipped_profiles()) {
    const auto profile = find_profile(std::string(name));
    ASSERT_TRUE(profile.ok()) << name << ": " << profile.error().message();
    EXPECT_EQ(profile->name, name);
    EXPECT_TRUE(profile->rates.has_value());
    EXPECT_GT(profile->memory_bytes, std::uint64_t{8} << 30);
  }
  const DeviceProfile h200 = find_profile("h200").value();
  EXPECT_EQ(h200.kind, DeviceKind::kCuda);
  EXPECT_EQ(h200.architecture, "sm_90");
  EXPECT_EQ(h200.cores, 132);
  EXPECT_DOUBLE_EQ(h200.rates->bandwidth.value(), 4.56e12);
  EXPECT_DOUBLE_EQ(h200.rates->peak_of(Arithmetic::kBf16).value(), 788e12);
}

const std::string kSmall =
    "name = a\nkind = cpu\narchitecture = x86-64\nmemory_gib = 8\ncores = 4\nisa = avx2 # its "
    "best\n";

TEST(ProfileFile, RatesMayBeLeftOut) {
  const DeviceProfile p = parse_profile(kSmall).value();
  EXPECT_FALSE(p.rates.has_value());
  EXPECT_TRUE(p.cpu.contains({CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c}));
  EXPECT_EQ(p.total_memory_bytes, std::uint64_t{8} << 30);
}

TEST(ProfileFile, RefusalsNameTheLineAndWhatWasExpected) {
  const auto refusal = [](const std::string& more) {
    const auto p = parse_profile(kSmall + more);
    return p.ok() ? std::string("accepted") : p.error().message();
  };
  EXPECT_EQ(refusal("speed = 9\n"), "line 7: there is no key 'speed'");
  EXPECT_EQ(refusal("launch_us = fast\n"),
            "line 7: 'launch_us' is 'fast', expected a number above 0");
  EXPECT_EQ(refusal("cores = 5\n"), "line 7: 'cores' stands twice");
  EXPECT_EQ(refusal("nonsense\n"), "line 7: expected KEY = VALUE");
  EXPECT_THAT(refusal("launch_us = 1\n"), HasSubstr("1 of the 6 rates"));
  for (const char* wild : {"nan", "inf", "-1", "0", "1e99"})
    EXPECT_THAT(refusal(std::string("launch_us = ") + wild), HasSubstr("expected a number above 0"))
        << wild;
  EXPECT_EQ(parse_profile("name = a\n").error().message(), "the profile has no 'kind'");
  EXPECT_EQ(parse_profile("kind = npu\n").error().message(),
            "line 1: kind is 'npu', expected cpu, cuda or metal");
}

TEST(ProfileFile, AnUnknownNameNamesThoseThatShip) {
  const auto p = find_profile("h900");
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(p.error().message(), HasSubstr("h200, m4-pro, rtx4090"));
}

TEST(TableKeys, FollowTheProfile) {
  DeviceProfile p = parse_profile(kSmall).value();
  p.maker_name = "A Processor";
  const TableKey key = table_key(p);
  EXPECT_EQ(key.backend, "cpu");
  EXPECT_EQ(key.memory_class, "8 GiB");
  EXPECT_EQ(key.cores, "4");
  EXPECT_EQ(key.vendor, "none");
  p.memory_bytes = std::uint64_t{3} << 30;  // what is free changes, the class does not
  EXPECT_EQ(table_key(p), key);
  p.cpu = {};
  EXPECT_NE(table_key(p), key);
}

}  // namespace
}  // namespace tern::backend
